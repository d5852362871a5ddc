"""Answers by a model that reads what a memory returned, and labels by a judge, within one budget."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import lines_of
from assay_operations.evaluations.judge_spending import NoMoneyError, Spending
from assay_operations.evaluations.paid_calls import PaidCalls, expect_backend, judge_settings

if TYPE_CHECKING:
    from assay_evals.longmemeval.results import Result
    from assay_evals.longmemeval.rows import Row
    from assay_evals.target.response import TargetResponse
    from assay_judge.pricing import Usage

T = TypeVar("T")

JUDGES = ("lexical", "anthropic", "openai")
_NO_KEY = "needs a key: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE)"


@dataclass(frozen=True)
class Graded:
    """An answer and its label.

    `error`: the target gave no answer. `judge_error`: the model that reads or judges gave none.
    """

    hypothesis: str = ""
    label: bool | None = None
    judge: str | None = None
    error: str | None = None
    judge_error: str | None = None


class Grader:
    """Answers and labels questions.

    Money is reserved before each call; without enough, a question stays unjudged.
    """

    def __init__(self, judge: str | None, model: str | None, budget_usd: float, top_k: int) -> None:
        """`judge`: lexical, anthropic, openai, or None for no labels. `model`: the model that answers; None for the target's own answers.

        Raises `OperationError`, `SettingsError`.
        """
        if judge is not None and judge not in JUDGES:
            raise OperationError("invalid", f"--judge: {judge!r} is not one of {', '.join(JUDGES)}")
        self._top_k = top_k
        self._lexical = judge == "lexical"
        #: Calls without a reply, by cause.
        self.failures: Counter[str] = Counter()
        self.skipped = 0
        self._judge = self._reader = None
        self._spending = Spending()
        self._spent_before = 0
        if judge in ("anthropic", "openai"):
            expect_backend(judge)
            self._judge = PaidCalls(
                budget_usd,
                without_key=f"--judge anthropic {_NO_KEY}, or use --judge lexical",
                spending=self._spending,
            )
        if model is not None:
            self._reader = PaidCalls(
                budget_usd, without_key=f"--model {_NO_KEY}", settings=judge_settings(model), spending=self._spending
            )

    @property
    def _paid(self) -> list[PaidCalls]:
        return [calls for calls in (self._judge, self._reader) if calls is not None]

    @property
    def judge_model(self) -> str | None:
        """Name of the judge in labels; None without one."""
        from assay_evals.longmemeval.judging import LEXICAL

        return self._judge.settings.model if self._judge else LEXICAL if self._lexical else None

    @property
    def identity(self) -> str | None:
        """Identity of the judge; two runs with the same one are comparable. None without a judge."""
        from assay_evals.longmemeval.judging import DIGEST

        if self._judge:
            return f"{self._judge.settings.model} {self._judge.judge.fingerprint} {DIGEST}"
        return self.judge_model

    @property
    def reader(self) -> str | None:
        """Fingerprint of the model that answers from what a memory returned; None without one."""
        return self._reader.judge.fingerprint if self._reader else None

    def keep_spending_in(self, path: Path | None) -> None:
        """Add the cost of earlier processes of the run, and record further ones. Raises `OperationError`."""
        if path is not None and self._paid:
            self._spending.keep_in(path)
            self._spent_before = self._spending.spent

    @property
    def cost_usd(self) -> float:
        """Maximum cost of the calls of this process, in US dollars."""
        from assay_judge.pricing import dollars

        return dollars(self._spending.spent - self._spent_before)

    async def __call__(self, row: "Row", response: "TargetResponse") -> Graded:
        """Return the answer of a row, labelled."""
        if self._reader is None:
            if response.answer is None:
                return Graded(
                    error="the target returned no answer: have a model answer with --model, or pass --retrieval-only"
                )
            return await self.label(row, response.answer)
        from assay_evals.longmemeval.judging import READER, READER_SCHEMA, answer_of, reader_message
        from assay_evals.longmemeval.memory import passages
        from assay_judge.api import BadReplyError

        def read(text: str, usage: "Usage | None") -> str:
            if (answer := answer_of(text)) is None:
                raise BadReplyError("ReplyMisfit", usage)
            return answer

        message = reader_message(row, passages(row, response, self._top_k))
        found = await self._asked(self._reader, READER, message, READER_SCHEMA, read)
        if isinstance(found, _Failed):
            return Graded(judge_error=f"no answer by the model: {found.why}")
        return await self.label(row, found)

    async def label(self, row: "Row", hypothesis: str) -> Graded:
        """Judge an answer. A blank answer is wrong, and costs no call."""
        from assay_evals.longmemeval.judging import (
            INSTRUCTIONS,
            SCHEMA,
            judge_message,
            kind_of,
            label_of,
            lexical_label,
        )
        from assay_judge.api import BadReplyError

        hypothesis = hypothesis.encode(errors="replace").decode()  # a lone surrogate, which no file can contain
        if self.judge_model is None:
            return Graded(hypothesis)
        if not hypothesis.strip():
            return Graded(hypothesis, False, self.judge_model)
        if self._judge is None:
            return Graded(hypothesis, lexical_label(row, hypothesis), self.judge_model)

        def read(text: str, usage: "Usage | None") -> bool:
            if (label := label_of(text)) is None:
                raise BadReplyError("ReplyMisfit", usage)
            return label

        message = judge_message(row, hypothesis)
        found = await self._asked(self._judge, INSTRUCTIONS[kind_of(row)], message, SCHEMA, read)
        if isinstance(found, _Failed):
            return Graded(hypothesis, judge_error=f"not judged: {found.why}")
        return Graded(hypothesis, found, self.judge_model)

    async def _asked(
        self,
        calls: PaidCalls,
        system: str,
        message: str,
        schema: dict[str, Any],
        read: "Callable[[str, Usage | None], T]",
    ) -> "T | _Failed":
        from assay_judge.api import CallError, Prompt

        try:
            return await calls.ask(Prompt(system, message, schema), read)
        except NoMoneyError:
            self.skipped += 1
            return _Failed("the budget is used up (--judge-budget)")
        except CallError as error:
            self.failures[error.kind] += 1
            return _Failed(error.kind)

    async def close(self) -> None:
        """Close the connections, and the file of costs."""
        for calls in self._paid:
            await calls.close()

    def note(self) -> str | None:
        """Return a note on cost and failures; None if no model was asked."""
        from assay_judge.pricing import dollars

        if not self._paid:
            return None
        return (
            f"models cost ${dollars(self._spending.spent):.4f}; {self.skipped} question(s) skipped by the budget, "
            f"{self.failures.total()} call(s) without a reply"
        )


@dataclass(frozen=True)
class _Failed:
    """A call without a reply."""

    why: str


@dataclass(frozen=True)
class Label:
    """A label from a file. `hypothesis`: the answer that it is of; None if the file has none."""

    right: bool
    model: str
    hypothesis: str | None


def labels_of(path: Path) -> dict[str, Label]:
    """Read labels from JSON lines, such as the benchmark's `evaluate_qa.py` writes.

    Raises `OperationError` for a line without a label, and for two labels of one question.
    """
    from assay_evals.longmemeval.judging import label_of
    from assay_evals.strict_json import JsonError, loads

    labels: dict[str, Label] = {}
    for number, line in enumerate(lines_of(path, "--labels"), start=1):
        if not line.strip():
            continue
        try:
            document = loads(line)
        except JsonError as error:
            raise OperationError("invalid", f"--labels: {path}: line {number} is {error}") from None
        if not isinstance(document, dict) or not isinstance(name := document.get("question_id"), str):
            raise OperationError("invalid", f"--labels: {path}: line {number} has no question_id")
        given = document.get("autoeval_label", document)
        right = label_of(given)
        if right is None:
            raise OperationError(
                "invalid",
                f"--labels: {path}: line {number} has no label: autoeval_label must be a boolean, or yes or no",
            )
        if name in labels:
            raise OperationError("invalid", f"--labels: {path}: line {number} is a second label of question {name}")
        model = given.get("model") if isinstance(given, dict) else None
        hypothesis = document.get("hypothesis")
        labels[name] = Label(
            right, model if isinstance(model, str) else path.name, hypothesis if isinstance(hypothesis, str) else None
        )
    if not labels:
        raise OperationError("invalid", f"--labels: {path} contains no labels")
    return labels


def labelled(result: "Result", labels: "dict[str, Label]") -> "Result":
    """Return a result with its label from a file; without one, it counts as unjudged."""
    if result.error is not None:
        return result
    found = labels.get(result.question_id)
    if found is None:
        return replace(
            result, label=None, judge=None, judge_error="not judged: the file of --labels has no label of it"
        )
    if found.hypothesis is not None and found.hypothesis != result.hypothesis:
        return replace(
            result, label=None, judge=None, judge_error="not judged: the label of --labels is of another answer"
        )
    return replace(result, label=found.right, judge=found.model, judge_error=None)
