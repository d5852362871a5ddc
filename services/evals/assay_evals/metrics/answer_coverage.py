"""Answer coverage: detects a system that stops answering, which other metrics would hide. Pure.

A case is answerable unless its `query_type` is `null`. Of answerable cases each is measured:

- `answered`: 1 where the target gives a real answer, 0 where the answer is blank or a refusal. A target that returns results alone gives
  none, and has no such metric; one that gives answers to some cases has 0 for the others.
- `no_context`: 1 where an answer comes without the passages it was made from, so that nothing can be held against them.
- `repeated_answer`: 1 where the answer is, word for word, one that the run gave before to a question about something else, as a system does
  that has one phrase for all, in any language. Equal answers are right where the cases expect the same documents or answer, or are of
  one cluster, and where they hold the expected answer.
- with a judge, `coverage`: 1 where the answer was scored; `abstained`: 1 where it makes no claim, because it is blank or refuses.
- with a judge, `check_failed_NAME`: 1 where the answer fails the check of that name.

Refusing what cannot be answered is right, and so is in none of these. Of cases that have no answer one is measured:

- `null_refused`: 1 if the target says that it does not know, or nothing; 0 if it invents an answer.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from statistics import fmean, stdev

from assay_evals.dataset.model import Case, normalise
from assay_evals.target.response import TargetResponse
from assay_schema.refusals import is_refusal
from assay_schema.scores import ABSTAINED, CHECK_FAILED, NO_CONTEXT

__all__ = [
    "ABSTAINED", "ANSWERED", "CHECK_FAILED", "COVERAGE", "JUDGE_NOISE", "NO_CONTEXT", "NULL_REFUSED", "REPEATED",
    "GivenAnswers", "answer_coverage", "is_answerable", "over_repeats",
]  # fmt: skip

ANSWERED, COVERAGE, REPEATED, NULL_REFUSED = "answered", "coverage", "repeated_answer", "null_refused"
#: Prefix of the names of metrics for the judge's disagreement with itself.
JUDGE_NOISE = "judge_noise_"


def is_answerable(query_type: str) -> bool:
    """True if a case of that type has an answer."""
    return query_type != "null"


def over_repeats(each: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Combine several verdicts on one answer: means, and the judge's disagreement with itself.

    `judge_noise_METRIC` is the standard deviation (n - 1) of that metric over the repeats that have it;
    `judge_noise_flips` is 1 if the repeats disagree on whether every claim is supported.
    """
    if len(each) < 2:
        return dict(each[0]) if each else {}
    combined: dict[str, float | None] = {}
    for name in dict.fromkeys(name for one in each for name in one):
        values = [value for one in each if (value := one.get(name)) is not None]
        if values:
            combined[name] = fmean(values)
        if len(values) > 1 and name not in (ANSWERED, COVERAGE, ABSTAINED, NULL_REFUSED):
            combined[JUDGE_NOISE + name] = stdev(values)
    faithful = [one.get("faithfulness") for one in each]
    combined[JUDGE_NOISE + "flips"] = float(len({value == 1.0 for value in faithful if value is not None}) > 1)
    return combined


def answer_coverage(case: Case, answer: TargetResponse) -> dict[str, float]:
    """Compute the coverage metrics that need no judge."""
    if answer.answer is None:
        return {}
    refused = is_refusal(answer.answer)
    if not is_answerable(case.query_type):
        return {NULL_REFUSED: float(refused)}
    has_passages = any(text.strip() for _, text in answer.contexts)
    return {ANSWERED: float(not refused), NO_CONTEXT: float(not refused and not has_passages)}


class GivenAnswers:
    """The answers of a run so far, by their words."""

    def __init__(self) -> None:
        self._cases: dict[bytes, list[Case]] = {}

    def add(self, case: Case, answer: TargetResponse) -> dict[str, float]:
        """Check if an answer repeats the answer to another question.

        Call it in the order of the cases, so that every run gets the same result.
        """
        if answer.answer is None or not is_answerable(case.query_type):
            return {}
        words = normalise(answer.answer)
        given = self._cases.setdefault(sha256(words.encode()).digest(), [])
        right = case.expected_answer is not None and normalise(case.expected_answer) in words
        repeated = not right and any(not _expect_the_same(case, other) for other in given)
        given.append(case)
        return {REPEATED: float(repeated)}


def _expect_the_same(case: Case, other: Case) -> bool:
    relevant = [{name for name, grade in each.relevance.items() if grade > 0} for each in (case, other)]
    return (
        normalise(case.query) == normalise(other.query)
        or (case.cluster is not None and case.cluster == other.cluster)
        or bool(relevant[0] & relevant[1])
        or (case.expected_answer is not None and case.expected_answer == other.expected_answer)
    )
