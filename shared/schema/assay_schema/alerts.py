"""Alerts: one document for each transition of an episode. Numbers and names, never captured text.

An episode covers one problem from its first sign to its resolution. It has one `alert_id`, and every transition has a
`transition_id` derived from it and from the transition's position. A transition that is published, stored or sent twice
can therefore be recognized.
"""

import re
import uuid
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from assay_schema.fields import AnyUuid, Model, Project, SchemaVersion, Service, UtcDatetime
from assay_schema.limits import NAME_MAX_CHARS, SAFE_INTEGER_MAX


class AlertKind(StrEnum):
    """Kinds of alerts. The set is closed."""

    SCORE_DRIFT = "score_drift"
    RETRIEVAL_DRIFT = "retrieval_drift"
    QUERY_DRIFT = "query_drift"
    SILENCE = "silence"
    JUDGE_ERRORS = "judge_errors"
    JUDGE_DRIFT = "judge_drift"
    FAILURES = "failures"
    LAG = "lag"
    WATERMARK_AGE = "watermark_age"
    BUDGET = "budget"
    JUDGE_STOPPED = "judge_stopped"


class AlertState(StrEnum):
    """State of an episode. It opens as `warn` or `critical` and ends as `resolved`; it starts from `ok`."""

    OK = "ok"
    WARN = "warn"
    CRITICAL = "critical"
    RECOVERING = "recovering"
    RESOLVED = "resolved"


class Severity(StrEnum):
    """Urgency of a transition: `critical` pages, `warning` waits for working hours, `info` is a record."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


#: `project` of an alert about the whole system, such as a lag.
ALL_PROJECTS = "all"
#: States in which an episode is open.
OPEN_STATES = (AlertState.WARN, AlertState.CRITICAL, AlertState.RECOVERING)

#: Characters that no text of an alert may contain: control characters, line and paragraph separators, invisible and
#: bidirectional marks. They can forge a line of a log, command a terminal, or show people different text than a program
#: reads.
_UNSEEN = re.compile(r"[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def one_line(text: str) -> str:
    """Replace the characters that alerts refuse by spaces."""
    return _UNSEEN.sub(" ", text)


def _is_one_line(text: str) -> str:
    if _UNSEEN.search(text):
        raise PydanticCustomError("not_one_line", "text with control or invisible characters")
    return text


_OneLine = AfterValidator(_is_one_line)
Number = Annotated[float, Field(allow_inf_nan=False)]
AlertMetric = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class Alert(Model):
    """Stream `alerts`, table `alerts`. One document for each transition of an episode."""

    schema_version: SchemaVersion = Field(default=1, description="Version of this format: 1.")
    alert_id: AnyUuid = Field(description="The episode: the same from its first transition to its last.")
    transition_id: AnyUuid = Field(description="Idempotency key: derived from `alert_id` and `sequence`.")
    sequence: Annotated[int, Field(ge=1, le=SAFE_INTEGER_MAX)] = Field(
        description="Position of the transition in its episode, from 1."
    )
    kind: AlertKind = Field(description="Kind of the alert. The set is closed.")
    state: AlertState = Field(description="The state after this transition.")
    previous: AlertState = Field(description="The state before it; `ok` for the first.")
    severity: Severity = Field(description="Urgency of this transition.")
    project: Project = Field(description="The tenant; `all` for the whole system.")
    service: Service | None = Field(default=None, description="The producer, if the alert is about one.")
    metric: AlertMetric | None = Field(default=None, description="Name of the metric.")
    series: Annotated[str, StringConstraints(max_length=NAME_MAX_CHARS), _OneLine] | None = Field(
        default=None, description="Source of the numbers: the judge's fingerprint or the embedding model."
    )
    since: UtcDatetime = Field(description="Estimated start of the change, in UTC.")
    at: UtcDatetime = Field(description="Time of the transition, by the time of the samples, in UTC.")
    value: Number | None = Field(default=None, description="The metric since the change.")
    baseline: Number | None = Field(default=None, description="The metric before the change, or the limit.")
    effect: Number | None = Field(
        default=None, description="Size of the change: relative to the baseline, or a distance between 0 and 1."
    )
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="95 % interval of `value`: low, high."
    )
    n: Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)] | None = Field(
        default=None, description="Number of samples behind `value`."
    )
    evidence: Number | None = Field(
        default=None, description="Evidence relative to the alert threshold; at 1 or more it raised the alert."
    )
    group: Annotated[str, Field(max_length=255), _OneLine] = Field(
        default="", description="Transitions with the same group at the same time belong in one notice."
    )
    summary: Annotated[str, Field(min_length=1, max_length=500), _OneLine] = Field(
        description="One sentence about what happened. Never captured text."
    )
    query: Annotated[str, Field(max_length=4_000), _OneLine] = Field(
        default="", description="SQL with details. The notifier replaces it."
    )
    acknowledge: Annotated[str, Field(max_length=500), _OneLine] = Field(
        default="",
        description="The command that acknowledges it: `assay drift acknowledge ...`; empty if there is none. The notifier replaces it.",
    )


def handed_in(identity: UUID) -> UUID:
    """Convert an id to one for submitted alerts: version 8, which no service uses. Deterministic."""
    return UUID(int=identity.int & ~(0xF << 76) | 8 << 76)


def is_handed_in(identity: UUID) -> bool:
    """True if an id is that of a submitted alert: from an evaluation, not from a service."""
    return identity.version == 8


def transition_id(alert_id: UUID, sequence: int) -> UUID:
    """Return the id of an episode's transition: the same however often it is published."""
    return uuid.uuid5(alert_id, str(sequence))
