"""The instrumented part of the demo: run it, and compare its spans with the stored events."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from assay_local.gateway_key import key_in
from assay_local.probes import Run
from assay_local.processes import LocalStack
from assay_local.supervisor import Supervisor, describe_exit
from assay_operations.errors import OperationError

#: Longest time of its run, in seconds.
_WITHIN_S = 120.0
#: Names of kinds of events, for people.
_KINDS = {"answer": "answers", "retrieval": "retrievals", "tool_call": "tool calls"}


@dataclass(frozen=True)
class OtlpRun:
    """Counts of the instrumented process, or why there are none."""

    service: str = ""
    spans: int = 0
    #: Events that its spans become, by kind.
    expected: Mapping[str, int] = field(default_factory=dict)
    #: Questions with personal data, by family.
    planted: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def total(self) -> int:
        """Number of events that its spans become."""
        return sum(self.expected.values())

    @classmethod
    def parse(cls, line: str) -> "OtlpRun | None":
        """Parse the report of the process; None if it is not one."""
        try:
            found = json.loads(line)
            return cls(found["service"], found["spans"], found["expected"], found["planted"])
        except (ValueError, KeyError, TypeError):
            return None


async def run_instrumented(system: LocalStack, supervisor: Supervisor, environment: Mapping[str, str]) -> OtlpRun:
    """Run the process until its spans are sent. Raises nothing: a failure is a `problem`."""
    try:
        async with asyncio.timeout(_WITHIN_S):
            child = await supervisor.run(system.instrumented(environment, key_in(system.data)))
    except OperationError as error:
        return OtlpRun(problem=error.message)
    except TimeoutError:
        return OtlpRun(problem=f"the instrumented process did not end within {_WITHIN_S:.0f} s")
    run = OtlpRun.parse(child.answer)
    if run is None or child.exit_code:
        why = describe_exit(child.exit_code or 0)
        return OtlpRun(problem=f"the instrumented process did not send its spans: {why}{child.last_lines()}")
    return run


def is_complete(sent: OtlpRun, stored: Run, with_contexts: int) -> bool:
    """True if all events are stored, all answers have contexts, and planted values were scrubbed."""
    scrubbed = all(count <= stored.families.get(family, 0) for family, count in sent.planted.items())
    return (
        not sent.problem
        and dict(stored.stored) == dict(sent.expected)
        and with_contexts == sent.expected.get("answer")
        and scrubbed
    )


def otlp_summary(sent: OtlpRun, stored: Run, with_contexts: int) -> RenderableType:
    """Return the line on the traffic over OpenTelemetry."""
    if sent.problem:
        return Group(Text(), Text(f"Over OpenTelemetry: {sent.problem}", style="bold red"))
    events = sum(stored.stored.values())
    kinds = ", ".join(f"{count:,} {_KINDS.get(kind, kind)}" for kind, count in stored.stored.items())
    findings = sum(stored.families.get(family, 0) for family in sent.planted)
    line = (
        f"Over OpenTelemetry: {sent.spans:,} spans sent, {events:,} of {sent.total:,} events stored ({kinds}); "
        f"{with_contexts:,} answers with contexts; {sum(sent.planted.values()):,} questions with personal data, "
        f"{findings:,} findings scrubbed"
    )
    return Group(Text(), Text(line, style="" if is_complete(sent, stored, with_contexts) else "bold red"))
