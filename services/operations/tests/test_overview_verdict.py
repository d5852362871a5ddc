"""The sentence of the overview, from the facts."""

import pytest

from assay_operations.overview.verdict import Facts, verdict

FINE = {"events": 1204, "newest_age_s": 3.0, "lost": 0, "judged": True}


@pytest.mark.parametrize(
    ("facts", "state", "sentence"),
    [
        (
            {},
            "good",
            "Working: 1,204 events in 10 min, newest stored 3 s ago, none lost in 24 h, no alert on quality, no open alert.",
        ),
        (
            {"warnings": 1},
            "warn",
            (
                "Working, with a warning: 1 warning open, 1,204 events in 10 min, newest stored 3 s ago, none lost in 24 h, "
                "no alert on quality."
            ),
        ),
        (
            {"critical": 2, "quality_alerts": 2},
            "bad",
            "Needs attention: 2 critical alerts open, 1,204 events in 10 min, newest stored 3 s ago, none lost in 24 h.",
        ),
        (
            {"critical": 2, "quality_alerts": 2, "worst": "faithfulness of shop since 2026-11-27 12:00 UTC"},
            "bad",
            (
                "Needs attention: 2 critical alerts open (the worst: faithfulness of shop since 2026-11-27 12:00 UTC), 1,204 events in "
                "10 min, newest stored 3 s ago, none lost in 24 h."
            ),
        ),
        (
            {"lost": 1},
            "bad",
            "Needs attention: 1 event lost in 24 h, 1,204 events in 10 min, newest stored 3 s ago, no alert on quality, no open alert.",
        ),
        (
            {"store_away_s": 95.0, "events": None, "newest_age_s": None, "lost": None, "judged": None},
            "bad",
            "Not working: the store does not answer, for 2 min now.",
        ),
        (
            {"store_away_s": 0.0, "events": None, "newest_age_s": None, "lost": None, "judged": None},
            "bad",
            "Not working: the store does not answer.",
        ),
        (
            {"redis_away_s": 40.0},
            "bad",
            (
                "Not working: Redis does not answer, for 40 s now, so producers spool their events, 1,204 events in 10 min, "
                "newest stored 3 s ago, none lost in 24 h, no alert on quality, no open alert."
            ),
        ),
        (
            {"stopped": ("512 entries wait for the writer (no writer is running)",), "lost": None},
            "bad",
            (
                "Not working: 512 entries wait for the writer (no writer is running), 1,204 events in 10 min, newest stored 3 s ago, "
                "no alert on quality, no open alert."
            ),
        ),
        (
            {"slow": ("90,000 entries wait for the judge (lag above delivery.lag_limit_entries)",)},
            "warn",
            (
                "Working, with a warning: 90,000 entries wait for the judge (lag above delivery.lag_limit_entries), "
                "1,204 events in 10 min, "
                "newest stored 3 s ago, none lost in 24 h, no alert on quality, no open alert."
            ),
        ),
        (
            {"events": 0, "usual": 300.0, "newest_age_s": 7200.0},
            "warn",
            (
                "Working, with a warning: no event in 10 min, usual are 300, newest stored 2 h ago, none lost in 24 h, "
                "no alert on quality, no open alert."
            ),
        ),
        (
            {"events": 0, "usual": 2.0, "judged": False},
            "good",
            "Working: 0 events in 10 min, newest stored 3 s ago, none lost in 24 h, no open alert.",
        ),
        (
            {"ever": False, "events": 0, "newest_age_s": None, "judged": False},
            "warn",
            "Waiting for the first event: everything runs, and nothing was captured yet.",
        ),
        (
            {"ever": False, "redis_away_s": 0.0, "events": 0, "newest_age_s": None, "judged": False},
            "bad",
            "Not working: Redis does not answer, so producers spool their events, 0 events in 10 min, none lost in 24 h, no open alert.",
        ),
    ],
)
def test_the_sentence_names_the_worst_first(facts: dict[str, object], state: str, sentence: str) -> None:
    found = verdict(Facts(**(FINE | facts)))  # type: ignore[arg-type]
    assert (found.state, found.sentence) == (state, sentence)


def test_a_store_away_is_never_called_free_of_alerts() -> None:
    assert "no open alert" not in verdict(Facts(store_away_s=5.0)).sentence
