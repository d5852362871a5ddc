"""Check a gate's answers against a team's scorers and floors, like `assay eval run`. Pure.

Captured and judged questions have no expected answer and no query type: a scorer that compares with an expected answer
is rejected, and so are floors of slices. Measured are scorers and latency; a floor of anything else is not reached.
Answers to questions from which personal data was removed are not scored, and decide nothing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from assay_evals.compare.floors import FloorCheck, floor_checks, unscored, without_score
from assay_evals.compare.rules_file import RulesFile
from assay_evals.compare.verdicts import Stage, Verdict
from assay_evals.dataset.captured_rows import Captured
from assay_evals.dataset.model import Case, document_id
from assay_evals.dataset.qrels import DEFAULT_SOURCE, KnownQuery
from assay_evals.errors import EvalsError
from assay_evals.metrics.scorers import Scoring
from assay_evals.replay.gates import UNMEASURED
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.target.response import TargetResponse

#: Metrics of a gate that can have a floor, in addition to scorers.
MEASURED = "a gate measures scorers, latency_p50_ms and latency_p95_ms"


def expect_fit(rules: RulesFile, scoring: Scoring) -> None:
    """Raise `EvalsError` for rules without effect in a gate.

    These are: no rule at all, floors of slices, and scorers that need a reference.
    """
    floors = [metric for metric, rule in rules.metrics.items() if rule.floor is not None]
    if rules.slices:
        raise EvalsError(
            "slices: questions of a gate have no query_type, tag, source or complexity: check slices with `assay eval run`, over a dataset"
        )
    if not scoring.specs and not floors:
        raise EvalsError(
            "no scorer and no floor, so nothing would be checked: a gate's thresholds are separate options"
        )
    for spec in scoring.specs:
        if spec.type == "similarity" and spec.value is None:
            raise EvalsError(
                f"{spec.metric} needs a reference, the case's expected_answer, but questions of a gate have none: "
                "give the scorer a value, or use it in `assay eval run`, over a dataset"
            )


def case_of(item: Captured | KnownQuery) -> Case:
    """Return the case for a scorer: the question and its metadata.

    Functions find the captured row in its `metadata`.
    """
    if isinstance(item, Captured):
        captured_fields = {"tool_name": item.tool_name, "retrieved_slugs": item.slugs, "source_ids": item.source_ids}
        return Case.model_construct(id=str(item.id), query=item.query, source="production", metadata=captured_fields)
    ids = [document_id(slug, None if source == DEFAULT_SOURCE else source) for source, slug in item.relevant]
    return Case.model_construct(id=item.query_id, query=item.query, expected_ids=ids)


@dataclass
class RulesGate:
    """Scores answers as they arrive, and checks the totals at the end."""

    rules: RulesFile
    scoring: Scoring
    results: list[CaseResult] = field(default_factory=list)
    without_answer: int = 0
    #: Answers that are not text.
    unreadable: int = 0
    rows_scrubbed: int = 0

    async def score(self, item: Captured | KnownQuery, answer: TargetResponse) -> Mapping[str, float | None]:
        """Score one answer; no scores if personal data was removed from the question. Raises `ScorerError`."""
        return {} if _scrubbed(item) else await self.scoring(case_of(item), answer)

    def add(self, item: Captured | KnownQuery, answer: TargetResponse, scores: Mapping[str, float | None]) -> None:
        """Count one answer with its scores."""
        if _scrubbed(item):
            self.rows_scrubbed += 1
            return
        self.without_answer += answer.answer is None or not answer.answer.strip()
        self.unreadable += answer.unparsed_fields.get("answer", 0)
        name = str(item.id) if isinstance(item, Captured) else item.query_id
        self.results.append(CaseResult(name, "technical", [], answer.latency_ms, dict(scores)))

    def verdict(self, *, path: str) -> dict[str, Any]:
        """Return the gate's part of the verdict document, with `breaches`."""
        run = Run("gate", RunConfig("gate", "", "", ""), "", None, self.results)
        rubrics = self.scoring.rubrics(())
        checks = floor_checks(run, self.rules.rules(), rubrics)
        reached = {check.metric for check in checks if check.verdict is Verdict.PASS}
        summaries = run.summary()
        breaches: list[dict[str, Any]] = []
        undecided: list[dict[str, Any]] = []
        if not self.results:
            reason = "no answer was scored"
            if self.rows_scrubbed:
                reason = "personal data was removed from every question: name a baseline with other questions too"
            nothing = {"metric": "answers", "observed": 0, "threshold": 1, "reason": reason}
            if self.rows_scrubbed:
                undecided.append(nothing | {UNMEASURED: True})
            else:
                breaches.append(nothing)
        for metric in sorted(rubrics - reached) if self.results else ():
            if missing := unscored(self.results, metric):
                answers, reason = len(self.results), without_score(missing)
                scored = {"metric": metric, "observed": answers - missing, "threshold": answers, "reason": reason}
                if missing == answers:
                    breaches.append(scored)
                else:
                    undecided.append(scored | {UNMEASURED: True})
        breached = {each["metric"] for each in breaches}
        breaches += [
            self._breach(check) for check in checks if check.blocks and self.results and check.metric not in breached
        ]
        return {
            "ran": True,
            "rules_path": path,
            "summary": {
                "answers": len(self.results),
                "without_answer": self.without_answer,
                "rows_scrubbed": self.rows_scrubbed,
                "metrics": {name: asdict(each) for name, each in summaries.items()},
                "latency": run.latency(),
            },
            "floors": [asdict(check) for check in checks],
            "warnings": [
                self._breach(check)
                for check in checks
                if check.verdict is Verdict.FAIL and check.stage is not Stage.BLOCK
            ],
            "note": self._note(),
            "breaches": breaches,
            "undecided": undecided,
        }

    def _breach(self, check: FloorCheck) -> dict[str, Any]:
        entry: dict[str, Any] = {"metric": check.metric, "observed": check.mean, "threshold": check.floor}
        if check.low is not None and check.high is not None:
            entry["interval"] = [check.low, check.high]
        if check.mean is None:
            entry["reason"] = f"not measured: {MEASURED}"
        elif note := self._note():
            entry["reason"] = note
        return entry

    def _note(self) -> str | None:
        """Describe missing and unreadable answers."""
        if self.unreadable:
            return f"{self.unreadable:,} response(s) have an `answer` that is not text: scorers of a text give those 0"
        if self.results and self.without_answer == len(self.results):
            return "the target returned only results and no answers: scorers of a text give those 0"
        return None


def _scrubbed(item: Captured | KnownQuery) -> bool:
    return isinstance(item, Captured) and item.scrubbed
