"""Scores by the lexical baseline."""

from assay_judge import lexical
from assay_judge.evaluator import before_judging, score_of, verdict_fields
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.messages import TOO_LONG_FOR_LEXICAL
from assay_judge.prompt import Case, case_of
from assay_judge.sampling import Draw
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import ScoreStatus


def lexical_score(
    judge: JudgeIdentity, answer: ScrubbedAnswer, drawn: Draw, checks: dict[str, bool], max_input_bytes: int
) -> bytes:
    """The JSON of a score by the lexical baseline."""
    case = case_of(str(answer.event_id), answer.payload)
    state = before_judging(answer, case, max_input_bytes) or _judged(case)
    status = state.pop("status")
    assert isinstance(status, ScoreStatus)
    return score_of(judge, answer, drawn, checks, status, **state).model_dump_json().encode()


def _judged(case: Case) -> dict[str, object]:
    try:
        return verdict_fields(lexical.judged(case), case)
    except lexical.TooLongError:
        return {
            "status": ScoreStatus.JUDGE_ERROR,
            "detail": TOO_LONG_FOR_LEXICAL,
        }
