"""Health checks of what measures the quality of answers. Pure: measurements in, findings out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay_operations.doctor.finding import Finding, Status

#: Hours without a result after which a nightly evaluation counts as missed.
NIGHT_MISSED_H = 49


def nightly_evaluation(configured: bool, outcomes: Sequence[tuple[str, float, str]]) -> Finding:
    """Check the nightly evaluations of a week, the latest last.

    Each is its outcome, hours ago, and its name with the detail.
    """
    name = "nightly evaluation"
    ended = [night for night in outcomes if night[0] != "rate_limited"]
    if not ended:
        summary = "configured, has not run yet" if configured else "not configured"
        return Finding(
            name,
            Status.OK,
            summary,
            ""
            if configured
            else "to enable it: set evals.dataset and evals.target (or see docs/gates.md), then run assay eval nightly",
        )
    counts = {
        outcome: sum(night[0] == outcome for night in ended) for outcome in dict.fromkeys(night[0] for night in ended)
    }
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    outcome, hours, detail = ended[-1]
    summary = f"{words} in a week; the latest {hours:.0f} h ago: {outcome}{': ' + detail if detail else ''}"
    if configured and min(night[1] for night in ended) > NIGHT_MISSED_H:
        return Finding(name, Status.WARN, summary, "none since: is `assay eval nightly` running?")
    # With few cases a pass is rare; without a significant regression nothing is wrong.
    if counts.keys() <= {"pass", "inconclusive"}:
        return Finding(name, Status.OK, summary)
    return Finding(
        name, Status.WARN, summary, "see: assay query 'SELECT * FROM eval_outcomes ORDER BY started_at DESC'"
    )


@dataclass(frozen=True)
class ContradictionsFacts:
    """The newest run of contradictions in a project; rates are None if it judged nothing."""

    project: str
    failed: bool
    rate: float | None
    low: float | None
    high: float | None
    hours_ago: float
    #: Open findings of high severity that no person refuted, of all runs.
    high_findings: int


def contradictions(runs: Sequence[ContradictionsFacts]) -> Finding:
    """Check the newest run of each project."""
    name = "contradictions"
    if not runs:
        return Finding(
            name, Status.OK, "none measured", "to measure them: assay eval contradictions run --from-capture"
        )
    words = []
    for each in runs:
        found = "the judge failed, so there is no rate"
        if each.rate is not None:
            found = f"{each.rate:.1%} of pairs ({each.low or 0:.1%} to {each.high or 0:.1%}), {each.high_findings} open high finding(s)"
        words.append(f"{each.project}: {found}, {each.hours_ago:.0f} h ago")
    summary = "; ".join(words)
    if bad := [each for each in runs if each.high_findings]:
        return Finding(name, Status.WARN, summary, f"see: assay eval contradictions review --project {bad[0].project}")
    if any(each.failed for each in runs):
        return Finding(name, Status.WARN, summary, "see judge.model and judge.api_key, and run it again")
    return Finding(name, Status.OK, summary)


def open_alerts(by_state: Mapping[str, int]) -> Finding:
    """Check for open alert episodes on the quality of answers, by state."""
    if not by_state:
        return Finding("alerts", Status.OK, "none open")
    listed = ", ".join(f"{count:,} {state}" for state, count in sorted(by_state.items()))
    return Finding("alerts", Status.WARN, f"{listed} open", "assay alerts list")


#: Number of the latest judged answers that are checked, and the minimum number of errors for a warning.
JUDGED_LATELY, JUDGE_ERRORS_LEAST = 100, 3
#: Maximum share of errors, as for `assay judge status`.
JUDGE_ERRORS_MOST = 0.05


def judging(scored: int, errors: Mapping[str, int], stopped: str) -> Finding:
    """Check the latest answers that were judged, with the causes of errors, and why judging stopped."""
    from assay_judge.reasons import reasons

    if stopped:
        return Finding("judging", Status.WARN, stopped, "fix it; the answers that wait in Redis are judged then")
    failed = sum(errors.values())
    asked = scored + failed
    if not asked:
        return Finding("judging", Status.OK, "no answer was judged in 24 hours")
    if failed < JUDGE_ERRORS_LEAST or failed <= JUDGE_ERRORS_MOST * asked:
        return Finding("judging", Status.OK, f"{scored:,} of the last {asked:,} answers that needed a verdict have one")
    listed = ", ".join(f"{why}: {count:,}" for count, why in reasons(errors))
    summary = f"{failed:,} of the last {asked:,} answers that needed a verdict have none: {listed}"
    return Finding("judging", Status.WARN, summary, "see assay judge status; correct the settings in brackets")
