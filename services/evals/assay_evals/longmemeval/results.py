"""Result of one question: a line of the output, which the benchmark's scripts also read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay_evals.longmemeval.retrieval import Metrics, measured
from assay_evals.longmemeval.rows import Row

#: Value of `kind` in the summary that `--by-type` adds as the last line.
BY_TYPE = "by_type_summary"


@dataclass(frozen=True)
class Result:
    """Result of one question. `label`: whether its answer is correct; None if it was not judged.

    `error` is set if the target gave no answer, `judge_error` if the model that reads or judges gave none: both count as wrong.
    """

    question_id: str
    question: str
    question_type: str
    abstention: bool
    answer: str | None
    hypothesis: str = ""
    retrieved: list[str] = field(default_factory=list)
    #: Whether a session with evidence is among the requested results; None for a question without evidence, and abstention.
    recall_hit: bool | None = None
    metrics: Mapping[str, Metrics] = field(default_factory=dict)
    label: bool | None = None
    judge: str | None = None
    error: str | None = None
    judge_error: str | None = None
    latency_ms: float | None = None
    ingest_ms: float | None = None
    #: Results that name no session of the history.
    unknown_results: int = 0

    @property
    def failed(self) -> bool:
        """True if there is no answer, or no label although one was wanted."""
        return self.error is not None or self.judge_error is not None

    def as_json(self) -> dict[str, Any]:
        """Return the line, without fields that have no value."""
        line: dict[str, Any] = {
            "question_id": self.question_id,
            "question": self.question,
            "question_type": self.question_type,
            "answer": self.answer,
            "hypothesis": self.hypothesis,
            "retrieved_session_ids": self.retrieved,
            "recall_hit": self.recall_hit,
            "abstention": self.abstention,
            "metrics": dict(self.metrics) or None,
            "autoeval_label": None if self.label is None else {"model": self.judge, "label": self.label},
            "error": self.error,
            "judge_error": self.judge_error,
            "latency_ms": self.latency_ms,
            "ingest_ms": self.ingest_ms,
            "unknown_results": self.unknown_results or None,
        }
        return {name: value for name, value in line.items() if value is not None}

    @classmethod
    def of_json(cls, line: Mapping[str, Any]) -> "Result":
        """Read a line. Raises `ValueError` for anything that `as_json` does not write."""
        label = line.get("autoeval_label") or {}
        try:
            result = cls(
                question_id=line["question_id"],
                question=line["question"],
                question_type=line["question_type"],
                abstention=line["abstention"],
                answer=line.get("answer"),
                hypothesis=line["hypothesis"],
                retrieved=line["retrieved_session_ids"],
                recall_hit=line.get("recall_hit"),
                metrics=line.get("metrics") or {},
                label=label.get("label"),
                judge=label.get("model"),
                error=line.get("error"),
                judge_error=line.get("judge_error"),
                latency_ms=line.get("latency_ms"),
                ingest_ms=line.get("ingest_ms"),
                unknown_results=line.get("unknown_results", 0),
            )
            valid = result._is_valid()
        except (KeyError, TypeError, AttributeError):
            valid = False
        if not valid:
            raise ValueError("not a result of this command")
        return result

    def _is_valid(self) -> bool:
        texts = (self.question_id, self.question, self.question_type, self.hypothesis, *self.retrieved)
        optional = (self.answer, self.judge, self.error, self.judge_error)
        numbers = [value for metrics in self.metrics.values() for value in metrics.values()]
        numbers += [value for value in (self.latency_ms, self.ingest_ms, self.unknown_results) if value is not None]
        return (
            all(isinstance(each, str) for each in texts)
            and all(each is None or isinstance(each, str) for each in optional)
            and all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers)
            and all(each is None or isinstance(each, bool) for each in (self.label, self.recall_hit))
            and isinstance(self.abstention, bool)
        )


def result_of(row: Row, ranked: list[str], top_k: int, **more: Any) -> Result:
    """Return the result of a ranking; the other fields as given."""
    ids = {session.id for session in row.sessions}
    found = bool(set(row.evidence) & set(ranked[:top_k])) if row.evidence and not row.abstention else None
    return Result(
        row.id,
        row.question,
        row.type,
        row.abstention,
        row.answer,
        retrieved=ranked,
        recall_hit=found,
        metrics=measured(row, ranked, top_k),
        unknown_results=len(set(ranked) - ids),
        **more,
    )
