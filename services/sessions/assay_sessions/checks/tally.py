"""Sum up the checks of many sessions: rates, verdicts, failures, trajectories, pass^k. Pure."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from assay_runtime.shares import Estimate
from assay_sessions.checks.checker import CheckedSession
from assay_sessions.checks.finding import Place, State
from assay_sessions.checks.rates import families, rate
from assay_sessions.checks.references import Named
from assay_sessions.checks.repeats import Attempts, PassPower, pass_power
from assay_sessions.checks.rule import Rule
from assay_sessions.checks.rules_file import Rules
from assay_sessions.checks.trajectories import TrajectoryRule
from assay_sessions.trajectory import METRICS

CheckVerdict = Literal["pass", "fail", "inconclusive"]
#: Failures of a rule that are listed; the rest is counted.
FAILURES_LISTED: Final = 20
NEEDS_REFERENCES: Final = "there are no reference trajectories: pass --references FILE"
_CODES: Final[dict[State, int]] = {"pass": 1, "fail": 0, "not_applicable": -1}


class Failure(NamedTuple):
    """A session that failed a rule, and the place that decided."""

    session_id: str
    place: Place
    detail: str
    #: Empty if it is not known.
    project: str = ""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """One rule over all sessions. `share`: passed of the applicable ones, with its 95 % interval."""

    name: str
    required: bool
    min_pass_rate: float
    passed: int
    failed: int
    not_applicable: int
    share: Estimate | None
    verdict: CheckVerdict
    reason: str
    failures: tuple[Failure, ...]

    @property
    def applicable(self) -> int:
        """Number of sessions that could pass or fail."""
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class MetricReport:
    """The mean of a trajectory metric over the sessions that have a value. `excluded`: 0/0."""

    name: str
    n: int
    excluded: int
    mean: Estimate | None


@dataclass(frozen=True, slots=True)
class ChecksReport:
    """The checks of all sessions. `sources`: sessions by agent."""

    verdict: CheckVerdict
    sessions: int
    sources: dict[str, int]
    rules: tuple[RuleReport, ...]
    #: Empty without reference trajectories.
    trajectory: tuple[MetricReport, ...]
    with_reference: int
    #: References that no session had; None if none were given.
    references_unused: tuple[Named, ...] | None
    #: pass^k for k from 1; empty if no rule is required, or no task was repeated.
    repeats: tuple[PassPower, ...]

    @property
    def decisive(self) -> list[RuleReport]:
        """The required rules that did not pass."""
        return [rule for rule in self.rules if rule.required and rule.verdict != "pass"]


class Tally:
    """Collects checked sessions; `report` sums them up. A session takes a few hundred bytes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._states = {name: array("b") for name in rules.by_name}
        self._failures: dict[str, list[Failure]] = {name: [] for name in rules.by_name}
        self._origins: dict[str, str | None] = {}
        self._ids: list[str] = []
        self._sources = defaultdict[str, int](int)
        self._metrics: dict[str, list[tuple[str, float | None]]] = {name: [] for name in METRICS}
        self._attempts = defaultdict[str, list[int]](lambda: [0, 0])
        self._attempted: set[tuple[str, str]] = set()

    def add(self, checked: CheckedSession) -> None:
        """Add one session."""
        self._ids.append(checked.session_id)
        self._origins[checked.session_id] = checked.forked_from
        self._sources[checked.source] += 1
        for name, finding in checked.findings.items():
            self._states[name].append(_CODES[finding.state])
            if finding.state == "fail" and len(self._failures[name]) < FAILURES_LISTED:
                self._failures[name].append(Failure(checked.session_id, finding.place, finding.detail, checked.project))
        if checked.score is not None:
            for name, value in checked.score.values().items():
                self._metrics[name].append((checked.session_id, value))
        self._attempt(checked)

    def _attempt(self, checked: CheckedSession) -> None:
        """Count an attempt at the session's task. It succeeds if a required rule passes and none fails.

        A copy does not count: a fork, or the same session in another project.
        """
        states = {checked.findings[name].state for name in self._rules.required}
        if checked.task is None or checked.forked_from is not None or states <= {"not_applicable"}:
            return
        if (attempt := (checked.task, checked.session_id)) in self._attempted:
            return
        self._attempted.add(attempt)
        counts = self._attempts[checked.task]
        counts[0] += 1
        counts[1] += "fail" not in states

    def report(self, *, references_unused: Sequence[Named] | None = None) -> ChecksReport:
        """Return the report. `references_unused` is None if no references were given."""
        family = families(self._origins)
        rules = tuple(
            self._rule(name, rule, family, compared=references_unused is not None)
            for name, rule in self._rules.by_name.items()
        )
        required = [rule.verdict for rule in rules if rule.required]
        verdict: CheckVerdict = (
            "fail" if "fail" in required else "inconclusive" if "inconclusive" in required else "pass"
        )
        return ChecksReport(
            verdict=verdict if self._ids else "inconclusive",
            sessions=len(self._ids),
            sources=dict(sorted(self._sources.items())),
            rules=rules,
            trajectory=self._trajectory(family),
            with_reference=len(self._metrics["exact"]),
            references_unused=None if references_unused is None else tuple(references_unused),
            repeats=self._repeats(),
        )

    def _rule(self, name: str, rule: Rule, family: dict[str, str], *, compared: bool) -> RuleReport:
        states = self._states[name]
        known = [(float(state), family[each]) for state, each in zip(states, self._ids, strict=True) if state >= 0]
        share = rate([value for value, _ in known], [cluster for _, cluster in known])
        failures = states.count(0)
        verdict, reason = decide(rule, len(known), failures, share)
        if not compared and isinstance(rule, TrajectoryRule):
            reason = NEEDS_REFERENCES
        return RuleReport(
            name=name,
            required=rule.required,
            min_pass_rate=rule.min_pass_rate,
            passed=len(known) - failures,
            failed=failures,
            not_applicable=len(states) - len(known),
            share=share,
            verdict=verdict,
            reason=reason,
            failures=tuple(self._failures[name]),
        )

    def _trajectory(self, family: dict[str, str]) -> tuple[MetricReport, ...]:
        if not self._metrics["exact"]:
            return ()
        reports = []
        for name, values in self._metrics.items():
            known = [(value, family[each]) for each, value in values if value is not None]
            mean = rate([value for value, _ in known], [cluster for _, cluster in known])
            reports.append(MetricReport(name, len(known), len(values) - len(known), mean))
        return tuple(reports)

    def _repeats(self) -> tuple[PassPower, ...]:
        tasks = [Attempts(n, successes) for n, successes in self._attempts.values()]
        most = max((each.n for each in tasks), default=0)
        if most < 2:
            return ()
        return tuple(pass_power(tasks, k) for k in range(1, min(most, self._rules.repeats.k) + 1))


def decide(rule: Rule, applicable: int, failures: int, share: Estimate | None) -> tuple[CheckVerdict, str]:
    """Return the verdict on a rule, and its reason.

    A minimum below 1 is compared with the interval of the share, as in other gates. No number of sessions can prove a minimum of 1:
    there the checked sessions decide.
    """
    if applicable < rule.min_applicable:
        return "inconclusive", f"applies to {applicable:,} session(s), at least {rule.min_applicable:,} needed"
    if share is None:
        return "pass", "applies to no session, which min_applicable = 0 allows"
    least = rule.min_pass_rate
    if least == 1:
        return ("fail", f"{failures:,} session(s) failed") if failures else ("pass", "")
    if share.high < least:
        return "fail", f"the pass rate is below {least:g}"
    if share.low >= least:
        return "pass", ""
    return "inconclusive", f"too few sessions to tell if the pass rate reaches {least:g}"


def exit_code(report: ChecksReport, *, inconclusive: CheckVerdict = "inconclusive") -> int:
    """Return the exit code of the gate: 0 pass, 1 fail, 2 no session was checked, 3 inconclusive.

    `inconclusive` decides how an inconclusive verdict counts.
    """
    if not report.sessions:
        return 2
    verdict = inconclusive if report.verdict == "inconclusive" else report.verdict
    return {"pass": 0, "fail": 1, "inconclusive": 3}[verdict]
