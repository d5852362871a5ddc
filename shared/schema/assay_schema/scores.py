"""Scores: the judge's verdict on an answer or session, and how it was reached. Never its text.

Every answer has one document for each judge (`fingerprint`), including answers that were not sampled, because the
checks of layer 1 run on all. A metric is present only if it was judged: an answer without claims has no faithfulness,
and its `status` gives the reason. A score of a session has a `session_id`, and a rubric.
"""

import uuid
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from assay_schema.fields import (
    AnyUuid,
    EventId,
    Model,
    Name,
    Origin,
    Project,
    SchemaVersion,
    Service,
    Traceparent,
    UtcDatetime,
)
from assay_schema.limits import SAFE_INTEGER_MAX


class ScoreStatus(StrEnum):
    """Results of judging an answer. The set is closed, and each answer has exactly one of them."""

    SCORED = "scored"
    ABSTAINED = "abstained"
    NO_CONTEXT = "no_context"
    JUDGE_ERROR = "judge_error"
    SKIPPED_BUDGET = "skipped_budget"
    NOT_SAMPLED = "not_sampled"


class Metric(StrEnum):
    """Metrics of an answer or a session, each in [0, 1].

    `hallucination_rate` is better when lower, all others when higher. Those of a session are shares of the items of its rubric that it
    meets: of all items, and by dimension.
    """

    FAITHFULNESS = "faithfulness"
    HALLUCINATION_RATE = "hallucination_rate"
    CITATION_PRECISION = "citation_precision"
    CITATION_RECALL = "citation_recall"
    ANSWER_RELEVANCY = "answer_relevancy"
    RUBRIC_SCORE = "rubric_score"
    TASK_SUCCESS = "task_success"
    TOOL_USE = "tool_use"
    TRAJECTORY = "trajectory"
    GROUNDEDNESS = "groundedness"
    SAFETY = "safety"
    INSTRUCTION_FOLLOWING = "instruction_following"


#: Metrics of sessions; all others are of answers.
SESSION_METRICS = frozenset(
    {
        Metric.RUBRIC_SCORE,
        Metric.TASK_SUCCESS,
        Metric.TOOL_USE,
        Metric.TRAJECTORY,
        Metric.GROUNDEDNESS,
        Metric.SAFETY,
        Metric.INSTRUCTION_FOLLOWING,
    }
)


def things_of(metric: str) -> str:
    """Return what a metric is measured on, in the plural."""
    return "sessions" if metric in SESSION_METRICS else "answers"


#: Metrics that are better when lower.
LOWER_IS_BETTER = frozenset({Metric.HALLUCINATION_RATE})

#: Shares of answers that could not be judged, because they make no claim or have no passages. They are monitored
#: because an unscored answer lowers no score.
ABSTAINED, NO_CONTEXT = ScoreStatus.ABSTAINED.value, ScoreStatus.NO_CONTEXT.value
#: Prefix of the names of checks' failure shares.
CHECK_FAILED = "check_failed_"
#: Amounts of answers and retrievals, independent of any judge, and the quantiles that drift monitors.
LATENCY, COST = "latency", "cost"
QUANTILES = {"p50": 0.5, "p95": 0.95}
AMOUNTS = frozenset(f"{what}_{name}" for what in (LATENCY, COST) for name in QUANTILES)
#: Results that the answer determines, not the judge or its budget.
_OUTCOMES = (ScoreStatus.SCORED, ScoreStatus.ABSTAINED, ScoreStatus.NO_CONTEXT)

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]
Count = Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)]
#: Name of a check: it becomes a key of a map column and a label.
CheckName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Label = Annotated[str, StringConstraints(max_length=255)]

#: Maximum number of claims with verdicts in a score. If there are more, unsupported ones are preferred; `claims` is the
#: full number.
VERDICTS_MAX = 200
#: Maximum number of items of a rubric.
RUBRIC_ITEMS_MAX = 20


class ClaimVerdict(Model):
    """Location of a claim and its evidence. Offsets count characters from 0; `_to` is exclusive."""

    verdict: Literal["supported", "contradicted", "not_found"] = Field(
        description="Verdict of the passages on the claim."
    )
    demoted: bool = Field(default=False, description="True if the judge called it supported without valid evidence.")
    answer_from: Count = Field(description="Start of the sentence in `answer` that makes the claim.")
    answer_to: Count = Field(description="End of that sentence in `answer`.")
    passage: Count = Field(
        default=0, description="The deciding passage, by its position in `contexts` from 1; 0 for none."
    )
    quote_from: Count = Field(default=0, description="Start of the deciding text in the passage.")
    quote_to: Count = Field(default=0, description="End of the deciding text in the passage.")


class RubricItem(Model):
    """One item of a session's rubric, and the verdict on it."""

    dimension: Literal["task_success", "tool_use", "trajectory", "groundedness", "safety", "instruction_following"] = (
        Field(description="What the item is about. The set is closed.")
    )
    criterion: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] = Field(
        description="Statement about the session, where true is good: written by the judge's model, and scrubbed."
    )
    absence: bool = Field(
        default=False, description="True if it says that something did not happen, which no quote can show."
    )
    verdict: Literal["yes", "no", "not_applicable", "not_judged"] = Field(
        default="not_judged", description="Whether the session meets it. `not_judged` until there is a verdict."
    )
    demoted: bool = Field(default=False, description="True if the judge said `yes` without valid evidence.")
    turn: Count = Field(default=0, description="Turn of the session with the evidence, from 1; 0 for none.")


class Score(Model):
    """Stream `scores`, table `scores`.

    One document per answer or session, and fingerprint; a later one replaces it.
    """

    schema_version: SchemaVersion = Field(default=1, description="Version of this format: 1.")
    score_id: AnyUuid = Field(description="Idempotency key: derived from `event_id` and `fingerprint`.")
    event_id: EventId = Field(
        description="The answer that was judged. For a session, an id made of its project, id and start."
    )
    project: Project = Field(description="The tenant.")
    service: Service = Field(description="The producer of the answer or session.")
    event_time: UtcDatetime = Field(description="The time inside `event_id`, in UTC with milliseconds.")
    judged_at: UtcDatetime = Field(description="Time of judging, or of skipping, in UTC.")
    status: ScoreStatus = Field(description="Result of judging. The set is closed.")
    base: bool = Field(
        description="True if the answer is in the unbiased base stream. Rates and drift use only these answers."
    )
    inclusion_probability: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        description="Probability that this answer is sampled, boosts included: totals are weighted by its inverse."
    )
    base_probability: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        default=1.0, description="Probability that this answer is in the base stream."
    )
    metrics: dict[Metric, Fraction] = Field(
        default_factory=dict, description="The metrics, each in [0, 1]; empty unless `status` is `scored`."
    )
    checks: dict[CheckName, bool] = Field(
        default_factory=dict, description="Layer 1: whether the answer passed each declared check."
    )
    boosts: list[CheckName] = Field(
        default_factory=list, description="The boost rules that increased the probability of this answer."
    )
    fingerprint: Hex = Field(
        description="The judge: hash of backend, its address, model, prompt, schema and effort. A new one starts a new series."
    )
    backend: Literal["anthropic", "anthropic-batch", "openai", "lexical"] = Field(
        description="The kind of judge: a model of Anthropic's, one in batches, one of an OpenAI-compatible API, or the lexical baseline."
    )
    model: Label = Field(description="The judge's model; the lexical baseline's version.")
    prompt_hash: Hex = Field(description="Hash of the prompt.")
    schema_hash: Hex = Field(description="Hash of the verdict's JSON Schema.")
    effort: Label | None = Field(default=None, description="The effort requested from the model.")
    claims: Count = Field(default=0, description="Number of claims found in the answer.")
    contradicted: Count = Field(default=0, description="Number of claims that a passage contradicts.")
    demoted: Count = Field(
        default=0, description="Number of `supported` verdicts rejected because no passage contains evidence."
    )
    verdicts: Annotated[list[ClaimVerdict], Field(max_length=VERDICTS_MAX)] = Field(
        default_factory=list, description="Verdict and evidence of each claim, in the answer's order."
    )
    traceparent: Traceparent | None = Field(default=None, description="`traceparent` of the answer. It is not stored.")
    origin: Origin | None = Field(default=None, description="`origin` of the answer. It is not stored.")
    session_id: Name | None = Field(default=None, description="The session that was judged; null for an answer.")
    revision: Count = Field(default=0, description="The revision of the session that was judged; 0 for an answer.")
    rubric: Annotated[list[RubricItem], Field(max_length=RUBRIC_ITEMS_MAX)] = Field(
        default_factory=list, description="The rubric of the session, with the verdict on each item."
    )
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="Cost of judging this answer, in US dollars, including failed attempts."
    )
    input_tokens: Count = Field(default=0, description="Tokens read, including cached ones.")
    output_tokens: Count = Field(default=0, description="Tokens written.")
    detail: Annotated[str, Field(max_length=2_000)] = Field(
        default="",
        description="Reason for a missing score or an omission, in the judge's own words. Never captured text.",
    )


def score_id(event_id: UUID, fingerprint: str) -> UUID:
    """Return the id of an answer's score by one judge: the same however often it is judged."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"score/{event_id}/{fingerprint}")


def is_lower_better(metric: str) -> bool:
    """True if a metric, or a share of answers, is better when lower."""
    return metric in LOWER_IS_BETTER or is_of_answers(metric) or is_amount(metric)


def is_amount(metric: str) -> bool:
    """True for a share of latencies or costs above their limit.

    These are `latency_p50`, `latency_p95`, `cost_p50` and `cost_p95`.
    """
    return metric in AMOUNTS


def is_share(metric: str) -> bool:
    """True for a share of answers or calls; every other metric is a mean of a judge's scores from 0 to 1."""
    return is_amount(metric) or is_of_answers(metric)


def is_of_answers(metric: str) -> bool:
    """True for a share of answers independent of a judge: `abstained`, `no_context`, `check_failed_NAME`."""
    return metric in (ABSTAINED, NO_CONTEXT) or metric.startswith(CHECK_FAILED)


def of_answers(score: Score) -> dict[str, float]:
    """Return the judge-independent shares of a score, each 0 or 1.

    Checks exist for every answer; the others only if the answer determined the result. Scores of sessions have none.
    """
    if score.session_id is not None:
        return {}
    shares = {CHECK_FAILED + name: float(not passed) for name, passed in score.checks.items()}
    if score.status in _OUTCOMES:
        shares |= {name: float(score.status == name) for name in (ABSTAINED, NO_CONTEXT)}
    return shares
