"""Scores: what the judge thinks of one answer, and how it came to think so. Never the answer itself.

Every answer has one document for each judge (`fingerprint`): those that were not sampled too, since the checks of layer 1 are for all.
A number stands only where something was judged: an answer without claims has no faithfulness, and its `status` says why.
"""

import uuid
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from assay_schema.events import AnyUuid, EventId, Model, Project, SchemaVersion, Service, UtcDatetime
from assay_schema.limits import SAFE_INTEGER_MAX


class ScoreStatus(StrEnum):
    """How judging an answer ended. The set is closed, and each answer ends in exactly one of them."""

    SCORED = "scored"
    ABSTAINED = "abstained"
    NO_CONTEXT = "no_context"
    JUDGE_ERROR = "judge_error"
    SKIPPED_BUDGET = "skipped_budget"
    NOT_SAMPLED = "not_sampled"


class Metric(StrEnum):
    """What is measured of an answer, each in [0, 1]. `hallucination_rate` is better when lower, all others when higher."""

    FAITHFULNESS = "faithfulness"
    HALLUCINATION_RATE = "hallucination_rate"
    CITATION_PRECISION = "citation_precision"
    CITATION_RECALL = "citation_recall"
    ANSWER_RELEVANCY = "answer_relevancy"


#: Metrics whose rise is a loss.
LOWER_IS_BETTER = frozenset({Metric.HALLUCINATION_RATE})

#: Shares of answers that could not be judged, since they make no claim or came without passages. What is never scored cannot fall.
ABSTAINED, NO_CONTEXT = ScoreStatus.ABSTAINED.value, ScoreStatus.NO_CONTEXT.value
#: What the names of checks' failure shares begin with.
CHECK_FAILED = "check_failed_"
#: What is measured of answers and retrievals whoever judges them, and the quantiles that drift watches.
LATENCY, COST = "latency", "cost"
QUANTILES = {"p50": 0.5, "p95": 0.95}
AMOUNTS = frozenset(f"{what}_{name}" for what in (LATENCY, COST) for name in QUANTILES)
#: How judging ended where the answer decided that, not the judge or its budget.
_OUTCOMES = (ScoreStatus.SCORED, ScoreStatus.ABSTAINED, ScoreStatus.NO_CONTEXT)

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]
Count = Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)]
#: A check's name: it becomes a key of a map column and a label.
CheckName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Label = Annotated[str, StringConstraints(max_length=255)]

#: Claims of an answer whose verdicts a score holds; of more, those without support are preferred, and `claims` tells how many there were.
VERDICTS_MAX = 200


class ClaimVerdict(Model):
    """Where the answer makes a claim, and where its evidence stands. Offsets count characters from 0; `_to` is the first one after it."""

    verdict: Literal["supported", "contradicted", "not_found"] = Field(
        description="What the passages say of the claim."
    )
    demoted: bool = Field(
        default=False, description="Whether the judge called it supported and showed nothing that speaks for it."
    )
    answer_from: Count = Field(description="Where in `answer` the sentence begins that makes the claim.")
    answer_to: Count = Field(description="Where in `answer` it ends.")
    passage: Count = Field(
        default=0, description="The passage that decides, by its place in `contexts` from 1; 0 for none."
    )
    quote_from: Count = Field(default=0, description="Where in the passage the deciding text begins.")
    quote_to: Count = Field(default=0, description="Where in the passage it ends.")


class Score(Model):
    """Stream `scores`, table `scores`. One document for each answer and fingerprint; a later one of the same answer replaces it."""

    schema_version: SchemaVersion = Field(default=1, description="Version of this format: 1.")
    score_id: AnyUuid = Field(description="Idempotency key: made of `event_id` and `fingerprint`.")
    event_id: EventId = Field(description="The answer that was judged.")
    project: Project = Field(description="The tenant.")
    service: Service = Field(description="The producer of the answer.")
    event_time: UtcDatetime = Field(description="The time inside `event_id`, in UTC with milliseconds.")
    judged_at: UtcDatetime = Field(description="When it was judged, or passed over, in UTC.")
    status: ScoreStatus = Field(description="How judging ended. The set is closed.")
    base: bool = Field(
        description="Whether the answer is in the unbiased base stream. Rates and drift use only these answers."
    )
    inclusion_probability: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        description="How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse."
    )
    base_probability: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        default=1.0, description="How probable it was that this answer would be in the base stream."
    )
    metrics: dict[Metric, Fraction] = Field(
        default_factory=dict, description="What was measured, each in [0, 1]; empty unless `status` is `scored`."
    )
    checks: dict[CheckName, bool] = Field(
        default_factory=dict, description="Layer 1: whether the answer passed each declared check."
    )
    boosts: list[CheckName] = Field(
        default_factory=list, description="The boost rules that made this answer more probable to be sampled."
    )
    fingerprint: Hex = Field(
        description="The judge: hash of backend, its address, model, prompt, schema and effort. A new one starts a new series."
    )
    backend: Literal["anthropic", "anthropic-batch", "openai", "lexical"] = Field(
        description="Who judged: a model of Anthropic's, one in batches, one of an API like OpenAI's, or the lexical baseline."
    )
    model: Label = Field(description="The judge's model; the lexical baseline's version.")
    prompt_hash: Hex = Field(description="Hash of the prompt.")
    schema_hash: Hex = Field(description="Hash of the verdict's JSON Schema.")
    effort: Label | None = Field(default=None, description="The effort the model was asked for.")
    claims: Count = Field(default=0, description="How many claims the answer was found to make.")
    contradicted: Count = Field(default=0, description="How many of them a passage contradicts.")
    demoted: Count = Field(
        default=0, description="How many verdicts `supported` fell because no passage holds evidence for them."
    )
    verdicts: Annotated[list[ClaimVerdict], Field(max_length=VERDICTS_MAX)] = Field(
        default_factory=list, description="Each claim's verdict and where its evidence stands, in the answer's order."
    )
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="What judging this answer cost, in US dollars, failed tries included."
    )
    input_tokens: Count = Field(default=0, description="Tokens read, cached ones included.")
    output_tokens: Count = Field(default=0, description="Tokens written.")
    detail: Annotated[str, Field(max_length=2_000)] = Field(
        default="",
        description="Why there is no score or what was left out, in the judge's own words. Never captured text.",
    )


def score_id(event_id: UUID, fingerprint: str) -> UUID:
    """The identity of an answer's score by one judge: the same however often it is delivered or judged."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"score/{event_id}/{fingerprint}")


def is_lower_better(metric: str) -> bool:
    """Whether a metric's rise, or that of a share of answers, is a loss."""
    return metric in LOWER_IS_BETTER or is_of_answers(metric) or is_amount(metric)


def is_amount(metric: str) -> bool:
    """Whether it is the share of latencies or costs beyond their limit: `latency_p50`, `latency_p95`, `cost_p50`, `cost_p95`."""
    return metric in AMOUNTS


def is_of_answers(metric: str) -> bool:
    """Whether it is a share of answers that no judge's opinion is in: `abstained`, `no_context`, `check_failed_NAME`."""
    return metric in (ABSTAINED, NO_CONTEXT) or metric.startswith(CHECK_FAILED)


def of_answers(score: Score) -> dict[str, float]:
    """What a score says of these shares, each 0 or 1: of checks for every answer, of the others where the answer decided how it ended."""
    found = {CHECK_FAILED + name: float(not passed) for name, passed in score.checks.items()}
    if score.status in _OUTCOMES:
        found |= {name: float(score.status == name) for name in (ABSTAINED, NO_CONTEXT)}
    return found
