"""Failures: what could not be stored, and why. Never the content."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from assay_schema.events import AnyUuid, Model, PiiCategories, Project, SchemaVersion, Service, UtcDatetime


class Reason(StrEnum):
    """Why an event was not stored, or a sink not reached. The set is closed."""

    DB_DOWN = "db_down"
    RLS_REJECT = "rls_reject"
    CHECK_VIOLATION = "check_violation"
    SCRUBBER_EXCEPTION = "scrubber_exception"
    OTHER = "other"


#: `project` and `service` of an entry too broken to say whose it is.
UNKNOWN = "unknown"
#: `error_class` of an entry that was delivered too often, and is kept as a dead letter for a while.
GIVEN_UP = "TooManyDeliveries"


class Failure(Model):
    """Stream `failures`, table `capture_failures`. One row per lost event and stage, or per incident of a sink.

    With an `entry_id` the event was lost for the tables; without one it is an incident (`db_down`): nothing was lost, the events wait.
    """

    schema_version: SchemaVersion = Field(default=1, description="Version of this format: 1.")
    failure_id: AnyUuid = Field(description="Idempotency key: the same for every redelivery of the same failure.")
    event_id: AnyUuid | None = Field(default=None, description="The event, when its entry was readable enough to say.")
    entry_id: Annotated[str, Field(pattern=r"^[0-9]{1,20}-[0-9]{1,20}$")] | None = Field(
        default=None, description="The stream entry that failed; null for an incident."
    )
    project: Project = Field(default=UNKNOWN, description="The tenant; `unknown` when its entry does not say.")
    service: Service = Field(default=UNKNOWN, description="The producer; `unknown` when its entry does not say.")
    stage: Annotated[str, Field(max_length=64)] = Field(
        description="The service that gave up: `scrubber`, `writer`, ..."
    )
    reason: Reason = Field(description="Why. The set is closed.")
    error_class: Annotated[str, Field(max_length=255)] = Field(description="The exception's class, or the rule broken.")
    detail: Annotated[str, Field(max_length=2_000)] = Field(
        default="", description="Which field and which rule. Never captured content."
    )
    deliveries: Annotated[int, Field(ge=0)] = Field(default=1, description="How often the entry had been delivered.")
    created_at: UtcDatetime = Field(description="When it failed, in UTC.")
    pii_attempted: PiiCategories = Field(
        default_factory=list, description="Categories of personal data found in an event that its policy refused."
    )
    pii_blocked: PiiCategories = Field(
        default_factory=list, description="Of these, the categories because of which the policy refused it."
    )
