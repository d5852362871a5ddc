"""Failures: the events that could not be stored, and the reasons. Never the content."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from assay_schema.fields import AnyUuid, Model, PiiCategories, Project, SchemaVersion, Service, UtcDatetime


class Reason(StrEnum):
    """Reasons why an event was not stored, or a sink not reached. The set is closed."""

    DB_DOWN = "db_down"
    RLS_REJECT = "rls_reject"
    CHECK_VIOLATION = "check_violation"
    SCRUBBER_EXCEPTION = "scrubber_exception"
    OTHER = "other"


#: `project` and `service` of an entry that is too broken to contain them.
UNKNOWN = "unknown"
#: `error_class` of an entry that was delivered too often, and is kept as a dead letter for a while.
GIVEN_UP = "TooManyDeliveries"


class Failure(Model):
    """Stream `failures`, table `capture_failures`.

    One row per lost event and stage, or per sink incident.

    With an `entry_id` the event was lost for the tables; without one it is an incident (`db_down`): nothing was lost,
    the events wait.
    """

    schema_version: SchemaVersion = Field(default=1, description="Version of this format: 1.")
    failure_id: AnyUuid = Field(description="Idempotency key: the same for every redelivery of the same failure.")
    event_id: AnyUuid | None = Field(default=None, description="The event, if its entry was readable enough.")
    entry_id: Annotated[str, Field(pattern=r"^[0-9]{1,20}-[0-9]{1,20}$")] | None = Field(
        default=None, description="The stream entry that failed; null for an incident."
    )
    project: Project = Field(default=UNKNOWN, description="The tenant; `unknown` if its entry does not contain it.")
    service: Service = Field(default=UNKNOWN, description="The producer; `unknown` if its entry does not contain it.")
    stage: Annotated[str, Field(max_length=64)] = Field(
        description="The service that gave up: `scrubber`, `writer`, ..."
    )
    reason: Reason = Field(description="The reason. The set is closed.")
    error_class: Annotated[str, Field(max_length=255)] = Field(
        description="The class of the exception, or the violated rule."
    )
    detail: Annotated[str, Field(max_length=2_000)] = Field(
        default="", description="The field and the rule. Never captured content."
    )
    deliveries: Annotated[int, Field(ge=0)] = Field(default=1, description="Number of deliveries of the entry.")
    created_at: UtcDatetime = Field(description="Time of the failure, in UTC.")
    pii_attempted: PiiCategories = Field(
        default_factory=list, description="Categories of personal data found in an event that its policy refused."
    )
    pii_blocked: PiiCategories = Field(
        default_factory=list, description="The subset of these categories that made the policy refuse it."
    )
