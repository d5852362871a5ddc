"""Report the checks of sessions: as a JSON document, as text rows, Markdown and JUnit XML. Pure."""

from typing import Any, Final

from assay_runtime.junit import JUnitSuite
from assay_runtime.shares import Estimate
from assay_schema.printable import plain, printable
from assay_sessions.checks.checker import CheckedSession
from assay_sessions.checks.finding import tool_name
from assay_sessions.checks.tally import NEEDS_REFERENCES, ChecksReport, CheckVerdict, Failure, RuleReport

SCHEMA_VERSION: Final = 1
#: Columns of a rule in every report, in order, after the verdict.
COLUMNS: Final = ("rule", "pass", "fail", "n/a", "share [95 %]", "minimum", "required")
_NUMBERS: Final = frozenset({"pass", "fail", "n/a", "minimum"})
_MARKS: Final = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}
#: Failures of a rule that text and Markdown list.
_SHOWN: Final = 3
#: Unused references that the JSON document lists; `references_unused` counts all.
_REFERENCES: Final = 20


def as_json(report: ChecksReport) -> dict[str, Any]:
    """Return the report as a document."""
    unused = report.references_unused or ()
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict,
        "verdict_in_words": verdict_in_words(report),
        "sessions": report.sessions,
        "sources": report.sources,
        "rules": [_rule_json(rule) for rule in report.rules],
        "trajectory": {
            "with_reference": report.with_reference,
            "references_unused": len(unused),
            "references_unused_first": [each._asdict() for each in unused[:_REFERENCES]],
            "metrics": [
                {"metric": each.name, "n": each.n, "excluded": each.excluded, **_estimate("mean", each.mean)}
                for each in report.trajectory
            ],
        },
        "repeats": [
            {"k": each.k, "tasks": each.tasks, "excluded": each.excluded, **_estimate("value", each.value)}
            for each in report.repeats
        ],
    }


def session_json(checked: CheckedSession) -> dict[str, Any]:
    """Return the findings on one session as a document, with the alignment of its trajectory."""
    score = checked.score
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": checked.session_id,
        "project": checked.project or None,
        "source": checked.source,
        "findings": [
            {"rule": name, "state": each.state, "turn": each.place.turn, "call": each.place.call, "detail": each.detail}
            for name, each in checked.findings.items()
        ],
        "trajectory": score
        and {
            **score.values(),
            "alignment": [
                {
                    "outcome": each.outcome,
                    "tool": tool_name(each.name),
                    "reference": each.reference,
                    "predicted": each.predicted,
                    "in_order": each.in_order,
                }
                for each in score.alignment
            ],
        },
    }


def _rule_json(rule: RuleReport) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "required": rule.required,
        "min_pass_rate": rule.min_pass_rate,
        "verdict": rule.verdict,
        "reason": rule.reason,
        "applicable": rule.applicable,
        "passed": rule.passed,
        "failed": rule.failed,
        "not_applicable": rule.not_applicable,
        **_estimate("share", rule.share),
        "failures": [
            {
                "session_id": each.session_id,
                "project": each.project or None,
                "turn": each.place.turn,
                "call": each.place.call,
                "detail": each.detail,
            }
            for each in rule.failures
        ],
        "failures_total": rule.failed,
    }


def _estimate(name: str, estimate: Estimate | None) -> dict[str, Any]:
    return {
        name: None if estimate is None else estimate.value,
        "interval": None if estimate is None else [estimate.low, estimate.high],
    }


def verdict_in_words(report: ChecksReport) -> str:
    """Describe the verdict with the rules that decided it."""
    if not report.sessions:
        return "verdict: inconclusive, because there are no sessions to check"
    if not any(rule.required for rule in report.rules):
        return "verdict: pass; no rule is required, so nothing can fail"
    reasons = [f"{rule.name}: {rule.reason}" for rule in report.decisive if rule.verdict == report.verdict]
    return f"verdict: {report.verdict}{', because ' if reasons else ''}{'; '.join(reasons)}"


def cells(rule: RuleReport) -> tuple[str, ...]:
    """Format a rule for the columns of `COLUMNS`."""
    return (
        rule.name,
        f"{rule.passed:,}",
        f"{rule.failed:,}",
        f"{rule.not_applicable:,}",
        share_text(rule.share),
        f"{rule.min_pass_rate:g}",
        "required" if rule.required else "",
    )


def share_text(share: Estimate | None) -> str:
    """Format a share with its interval."""
    return "–" if share is None else f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"


def failure_text(failure: Failure) -> str:
    """Format a failed session: its project and id, the place, and the reason."""
    place = str(failure.place)
    name = f"{failure.project}/{failure.session_id}" if failure.project else failure.session_id
    return f"{name}{f' ({place})' if place else ''}: {failure.detail}"


def text(report: ChecksReport) -> str:
    """Return the report for a terminal: a table of the rules, the first failures, and the verdict."""
    rows = [("verdict", *COLUMNS), *((_shown(rule), *cells(rule)) for rule in report.rules)]
    lines = [_sessions(report), *_aligned(rows)]
    for rule in report.rules:
        lines += [f"  {rule.name}: {failure_text(each)}" for each in rule.failures[:_SHOWN]]
        if (more := rule.failed - _SHOWN) > 0:
            lines.append(f"  {rule.name}: and {more:,} more")
    lines += [*_trajectory(report), *_repeats(report), verdict_in_words(report)]
    return "\n".join(map(printable, lines))


def markdown(report: ChecksReport) -> str:
    """Return the report for a pull request.

    It has ids of sessions and names of tools, and no captured text.
    """
    lines = [
        f"## {_MARKS[report.verdict]} Session checks: {report.verdict}",
        "",
        f"{plain(_sessions(report))} V{plain(verdict_in_words(report))[1:]}.",
        "",
        f"| | {' | '.join(COLUMNS)} |",
        "| --- " * (1 + len(COLUMNS)) + "|",
        *(f"| {_mark(rule)} | {' | '.join(map(plain, cells(rule)))} |" for rule in report.rules),
    ]
    for rule in report.rules:
        if rule.failures:
            worst = "; ".join(plain(failure_text(each)) for each in rule.failures[:_SHOWN])
            more = f"; and {rule.failed - _SHOWN:,} more" if rule.failed > _SHOWN else ""
            lines += ["", f"{plain(rule.name)}: {worst}{more}"]
    notes = [*_trajectory(report), *_repeats(report)]
    lines += ["", *(f"- {plain(each.strip())}" for each in notes)] if notes else []
    return "\n".join(lines) + "\n"


def junit(report: ChecksReport, *, inconclusive: CheckVerdict = "inconclusive") -> str:
    """Return the report as JUnit XML, one test for each rule.

    Rules that are not required never fail: they are skipped.
    """
    suite = JUnitSuite("assay sessions check", inconclusive)
    for rule in report.rules:
        worst = "; ".join(failure_text(each) for each in rule.failures[:_SHOWN])
        said = [
            f"{rule.passed:,} passed, {rule.failed:,} failed, {rule.not_applicable:,} not applicable",
            rule.reason,
            worst,
        ]
        decides = rule.required or rule.applicable
        outcome = rule.verdict if decides else "pass"
        suite.add(rule.name, "; ".join(filter(None, said)), outcome, advisory="" if rule.required else "not required")
    return str(suite)


def _shown(rule: RuleReport) -> str:
    """Return the verdict of a rule; a rule that is not required has none if it applies to no session."""
    return rule.verdict if rule.required or rule.applicable else "–"


def _mark(rule: RuleReport) -> str:
    return _MARKS[rule.verdict] if rule.required else "" if rule.verdict != "fail" else "⚠️"


def _sessions(report: ChecksReport) -> str:
    by_agent = ", ".join(f"{count:,} {source or 'of an unknown agent'}" for source, count in report.sources.items())
    return f"{report.sessions:,} session(s){f': {by_agent}' if by_agent else ''}."


def _trajectory(report: ChecksReport) -> list[str]:
    lines = []
    for each in report.trajectory:
        excluded = f", {each.excluded:,} excluded (0/0)" if each.excluded else ""
        lines.append(f"  trajectory {each.name:10} {share_text(each.mean)}  n={each.n:,}{excluded}")
    if unused := report.references_unused:
        more = f" and {len(unused) - _SHOWN:,} more" if len(unused) > _SHOWN else ""
        words = "reference matches" if len(unused) == 1 else "references match"
        lines.append(f"  {len(unused):,} {words} no session: {', '.join(map(str, unused[:_SHOWN]))}{more}")
    if waiting := [rule.name for rule in report.rules if rule.reason == NEEDS_REFERENCES]:
        lines.append(f"  not checked: {', '.join(waiting)}: {NEEDS_REFERENCES}")
    return lines


def _repeats(report: ChecksReport) -> list[str]:
    lines = []
    for each in report.repeats:
        excluded = f", {each.excluded:,} with fewer attempts" if each.excluded else ""
        lines.append(f"  pass^{each.k} {share_text(each.value)}  {each.tasks:,} task(s){excluded}")
    return lines


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table; numbers are on the right of their columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<", *(">" if name in _NUMBERS else "<" for name in COLUMNS)]
    lines = []
    for row in rows:
        padded = [f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines
