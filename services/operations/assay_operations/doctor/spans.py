"""Check which spans of OpenTelemetry made no event today, and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assay_operations.doctor.finding import Finding, Status
from assay_operations.doctor.redis_checks import StreamFacts
from assay_schema.streams import SPANS, unassembled_key
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis

_CHECK = "spans"
#: What to do about the reasons that lose something, in the order of the hints. docs/otel.md has all reasons.
_HINTS = {
    "no_content": (
        "no_content: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true in the instrumented service "
        "(OpenLLMetry: TRACELOOP_TRACE_CONTENT=true; OpenInference: OPENINFERENCE_HIDE_INPUTS=false and "
        "OPENINFERENCE_HIDE_OUTPUTS=false)"
    ),
    "dropped_attributes": "dropped_attributes: set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 in the instrumented service",
    "no_query": "no_query: let the instrumentation record the input of the call",
    "unreadable": "unreadable: texts are not in the form of their convention; see the table of attributes in docs/otel.md",
    "late": "late: raise assembler.grace_s (ASSAY_ASSEMBLER_GRACE_S)",
    "invalid": "invalid: times or texts of spans cannot be stored",
}


async def counts(client: "Redis", shards: int) -> dict[str, Counter[str]]:
    """Read the number of spans that made no event today (UTC), by reason, per project."""
    found: dict[str, Counter[str]] = {}
    seconds, _ = await client.time()
    today = datetime.fromtimestamp(seconds, UTC).date()
    for shard in range(shards):
        for name, count in (await client.hgetall(unassembled_key(shard, today))).items():
            project, _, reason = name.decode().rpartition("/")
            found.setdefault(project, Counter())[reason] += int(count)
    return found


def finding(
    by_project: Mapping[str, Mapping[str, int]], streams: Sequence[StreamFacts], visibility_timeout_s: float
) -> Finding:
    """Return the finding. `streams` are the facts of all streams. Pure."""
    waiting = sum(_unread(facts, visibility_timeout_s) for facts in streams if facts.name == SPANS.name)
    if waiting:
        batches = counted(waiting, "batch of spans waits", "batches of spans wait")
        summary = f"{batches}, and no assembler is running"
        return Finding(_CHECK, Status.FAIL, summary, "start the assembler (assay up starts one), or see its log")
    if not by_project:
        return Finding(_CHECK, Status.OK, "none without an event today")
    listed = "; ".join(
        f"{project}: {', '.join(f'{reason} {count:,}' for reason, count in _most_first(by_project[project]))}"
        for project in sorted(by_project)
    )
    reasons = {reason for counted in by_project.values() for reason in counted}
    hints = [hint for reason, hint in _HINTS.items() if reason in reasons]
    summary = f"without a separate event today: {listed}"
    if not hints:
        return Finding(_CHECK, Status.OK, summary)
    return Finding(_CHECK, Status.WARN, summary, f"{'; '.join(hints)}; see docs/otel.md")


def _unread(facts: StreamFacts, visibility_timeout_s: float) -> int:
    """Return the number of entries that wait while no assembler is connected."""
    if not facts.groups:
        return facts.length
    return sum(group.waiting for group in facts.groups if not group.consumers or group.silent(visibility_timeout_s))


def _most_first(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
