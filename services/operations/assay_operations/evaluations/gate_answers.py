"""Scorers, floors and the rubric judge of `assay gate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.judge_options import judge_named
from assay_operations.evaluations.rules import rules_of, scoring_of
from assay_operations.evaluations.run_judge import RunJudge

if TYPE_CHECKING:
    from assay_evals.compare.rules_file import RulesFile
    from assay_evals.metrics.scorers import Scoring


@dataclass(frozen=True)
class Answers:
    """The rules, scorers and judge for the answers of a gate."""

    rules: "RulesFile"
    scoring: "Scoring"
    judge: RunJudge | None

    async def close(self) -> None:
        """Close the judge's connections."""
        if self.judge is not None:
            await self.judge.close()


def answers_held(
    rules: Path | None, scorers: list[str] | None, judge: str | None, budget: str | None, deadline_s: float
) -> Answers | None:
    """Return the rules of the options; None without any. Raises `OperationError` for one without effect."""
    from assay_evals.errors import EvalsError
    from assay_evals.replay.rules_gate import expect_fit

    if rules is None and not scorers:
        if judge is not None or budget is not None:
            raise OperationError(
                "invalid", "--judge: a gate uses it for rubrics, and there is none: add one with --scorer or --rules"
            )
        return None
    held = rules_of(rules)
    named = judge_named(judge, budget)
    scoring = scoring_of(scorers, held, (), named.rubric if named else None, deadline_s)
    if named and all(spec.type != "rubric" for spec in scoring.specs):
        raise OperationError(
            "invalid", "--judge: a gate uses it for rubrics, and no scorer is one: omit it, or add a rubric"
        )
    try:
        expect_fit(held, scoring)
    except EvalsError as error:
        raise OperationError("invalid", f"{'--rules' if rules else '--scorer'}: {error}") from None
    return Answers(held, scoring, named)
