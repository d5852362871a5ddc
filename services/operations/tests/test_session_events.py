"""The events of a session, and the places where its long texts are cut."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from assay_operations.sessions.cutting import safe_cut
from assay_operations.sessions.events import revision, session_events
from assay_operations.sessions.stored import Known
from assay_schema.events import SessionEvent
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.validation import event_time_ok, parse_event
from assay_scrubber.engine import Scrubber
from assay_scrubber.finding import Finding, Scrubbed
from assay_scrubber.policy import Policy
from assay_scrubber.taxonomy import Category
from assay_sessions.parts import PartsError, join
from assay_sessions.record import Call, Message, Transcript
from assay_sessions.text_cut import natural_cut

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
SCRUBBER = Scrubber(Policy())


def transcript(*messages: Message, **fields: Any) -> Transcript:
    given = {"created": NOW - timedelta(hours=1), "updated": NOW, "title": "A title", **fields}
    return Transcript(
        "ses_1", "opencode", messages=messages or (Message("user", "hi"), Message("model", "hello")), **given
    )


def events(made: Transcript, **options: Any) -> list[bytes]:
    given = {"project": "shop", "service": None, "now_ms": NOW_MS, "cut": natural_cut, **options}
    return list(session_events(revision(made), **given))


def parsed(made: Transcript, **options: Any) -> list[SessionEvent]:
    found = [parse_event(each) for each in events(made, **options)]
    assert all(isinstance(each, SessionEvent) for each in found)
    return found  # type: ignore[return-value]


def test_a_small_session_is_one_event_that_states_what_the_whole_session_has() -> None:
    calls = (Call("bash", {"command": "ls"}), Call("bash", {"command": "rm"}, "no", "refused"))
    [event] = parsed(
        transcript(
            Message("user", "hi"), Message("model", "", calls), Message("model", "done"),
            model="m-1", cost_usd=0.5, tokens={"input": 7, "output": 3}, parent_session_id="ses_0",
        )
    )  # fmt: skip
    payload = event.payload
    assert (event.session_id, event.service, event.project) == ("ses_1", "opencode", "shop")
    assert (payload.part, payload.parts, payload.revision) == (1, 1, NOW_MS)
    assert (payload.turns, payload.tools, payload.tool_errors) == (2, 2, 1)
    assert (payload.cost_usd, payload.input_tokens, payload.output_tokens) == (0.5, 7, 3)
    assert (payload.model, payload.parent_session_id, payload.status) == ("m-1", "ses_0", "answered")


def test_a_session_of_twenty_mebibytes_is_parts_that_join_to_the_same_document() -> None:
    chance = random.Random(7)  # noqa: S311 - the same text every time
    words = [str(chance.random()) for _ in range(500)]
    calls = tuple(
        Call("read", {"path": f"f{number}"}, " ".join(chance.choices(words, k=550)), call_id=str(number))
        for number in range(2_000)
    )
    made = transcript(Message("user", "go"), Message("model", "", calls), Message("model", "done"))
    raw = events(made, cut=safe_cut(SCRUBBER))
    assert sum(map(len, raw)) > 20 * 1024 * 1024
    assert max(map(len, raw)) < ENTRY_MAX_BYTES // 4
    found = [parse_event(each) for each in raw]
    assert [each.payload.part for each in found] == list(range(1, len(found) + 1))  # type: ignore[union-attr]
    document = revision(made).document
    fragments = [orjson.loads(each)["payload"] for each in raw]
    names = ("session_id", "title", "created", "request", "response", "intermediate_events", "metadata")
    assert join([{name: each[name] for name in names} for each in fragments]) == document


def test_the_same_session_has_the_same_ids_and_a_changed_one_has_others() -> None:
    first, again = parsed(transcript()), parsed(transcript(), now_ms=NOW_MS + 5_000)
    changed = parsed(
        transcript(Message("user", "hi"), Message("model", "hello there"), updated=NOW + timedelta(seconds=1))
    )
    assert [each.event_id for each in first] == [each.event_id for each in again]
    assert first[0].event_id != changed[0].event_id
    assert first[0].payload.revision < changed[0].payload.revision
    assert first[0].event_id != parsed(transcript(), project="other")[0].event_id


@pytest.mark.parametrize(
    "times",
    [
        {"updated": NOW + timedelta(days=400)},
        {"updated": NOW + timedelta(days=400), "created": NOW + timedelta(days=399)},
        {"updated": datetime(1960, 1, 1, tzinfo=UTC), "created": datetime(1960, 1, 1, tzinfo=UTC)},
    ],
)
def test_a_clock_that_is_ahead_or_absurd_makes_no_event_that_is_refused(times: dict[str, Any]) -> None:
    [event] = parsed(transcript(**times))
    assert event_time_ok(event.event_id, NOW_MS)
    assert event.event_id == parsed(transcript(**times), now_ms=NOW_MS + 1_000)[0].event_id


@pytest.mark.parametrize("secret", ["password: h7Xk2pQz9wLmR4tV", "postgres://app:h7Xk2pQz9wLm@db.example.com/shop"])
def test_no_cut_goes_through_a_secret_or_between_it_and_its_name(secret: str) -> None:
    cut = safe_cut(SCRUBBER)
    for place in range(len(secret) + 12):
        text = ("filler words " * 80)[: 1_000 - place] + "\n" + secret + "\n" + "more words " * 100
        at = cut(text, 1_000)
        assert 0 < at <= 1_000
        found = SCRUBBER.scrub(text[:at]).text + SCRUBBER.scrub(text[at:]).text
        assert "h7Xk2pQz9wLm" not in found, (place, at)


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36],
        "AKIAQ3EGPLANTED77XYZ",
        "postgres://app:h7Xk2pQz9wLm@db.example.com/shop",
    ],
)
def test_nor_does_one_in_a_text_without_white_space(secret: str) -> None:
    cut = safe_cut(SCRUBBER)
    assert SCRUBBER.scrub(f'"a":1,"k":"{secret}","b":2').findings
    for place in range(2, len(secret) + 8, 3):
        filler = '{"n":[1,2,3],"ok":true},' * 60
        text = f'{filler[: 1_000 - place]}"k":"{secret}",{filler}'
        at = cut(text, 1_000)
        assert 0 < at <= 1_000
        assert SCRUBBER.scrub(text[:at]).text + SCRUBBER.scrub(text[at:]).text == SCRUBBER.scrub(text).text, (place, at)


def test_a_text_without_any_safe_place_is_not_cut() -> None:
    class FindsEverything:
        def scrub(self, text: str) -> Any:
            return Scrubbed("", [Finding("secret", Category.CREDENTIAL, 0, len(text))]) if text else Scrubbed("", [])

    with pytest.raises(PartsError, match="hide nothing from the scrubber"):
        safe_cut(FindsEverything())("x" * 5_000, 1_000)  # type: ignore[arg-type]


def test_where_nothing_is_found_the_cut_is_the_natural_one() -> None:
    text = "one two three\n" * 100
    assert safe_cut(SCRUBBER)(text, 1_000) == natural_cut(text, 1_000)


def test_what_is_known_is_the_newest_revision_with_each_of_its_digests() -> None:
    known = Known([("a", 5, ["x", "y"])])
    assert [known.has("a", key) for key in ((4, "z"), (5, "x"), (5, "y"), (5, "a"), (5, "z"), (6, "x"))] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
    assert not known.has("b", (0, "x"))
    known.add("a", (5, "z"))
    assert known.has("a", (5, "z"))
    assert known.has("a", (5, "x"))
    known.add("a", (7, "q"))
    assert not known.has("a", (7, "x"))
    assert known.has("a", (5, "new"))
