"""Report of a demo run as tables. Pure: numbers in, renderables out."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay_access.settings_files import Ports
from assay_local.agent_run import AgentRun
from assay_local.gateway_key import FILE
from assay_local.probes import Lag, Quality, Run
from assay_schema.ids import row_ms

DEFAULT_PORT_BASE = 9100


@dataclass(frozen=True)
class Report:
    """Counts of the demo producer."""

    captured: Mapping[str, int]
    planted: Mapping[str, int]
    questions: int
    seconds: float
    stats: Mapping[str, Any] = field(default_factory=dict)
    #: Unix milliseconds from which the service was degraded, if it was.
    degraded_ms: int | None = None
    agent: AgentRun | None = None

    @property
    def total(self) -> int:
        """Number of events passed to the SDK."""
        return sum(self.captured.values())

    @property
    def held_back(self) -> str:
        """Events that the SDK did not send to Redis, as text; empty if there are none."""
        dropped = self.stats.get("dropped") or {}
        counts = {f"dropped ({reason})": count for reason, count in dropped.items()}
        counts |= {
            "still queued": self.stats.get("queue_entries", 0),
            "bytes in the spool": self.stats.get("spool_bytes", 0),
        }
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)

    @classmethod
    def parse(cls, line: str) -> "Report | None":
        """Parse a report from its line; None if it is not a report."""
        try:
            found = json.loads(line)
            return cls(
                found["captured"],
                found["planted"],
                found["questions"],
                found["seconds"],
                found.get("stats") or {},
                found.get("degraded_ms"),
                AgentRun.of(found.get("agent")),
            )
        except (ValueError, KeyError, TypeError):
            return None


def reconciled(report: Report, run: Run) -> bool:
    """True if the events that are stored or recorded as failed are exactly those captured."""
    return report.total == run.accounted


def summary(report: Report, run: Run, lag: Lag, watermark: int, memory: Mapping[str, int]) -> RenderableType:
    """Return the tables of a run."""
    return Group(
        Text(),
        _events(report, run),
        Text(),
        _scrubbed(report, run),
        Text(),
        _facts(report, run, lag, watermark, memory),
    )


def quality_summary(
    answers: int,
    found: Quality,
    alerts: Sequence[Mapping[str, Any]],
    *,
    degraded_ms: int | None = None,
    arrived: set[str] | None = None,
) -> RenderableType:
    """Return the table of judged answers and alerts.

    `arrived`: the episodes in Alertmanager, if one runs.
    """
    table = Table(title="Quality of the answers", title_justify="left", show_header=False)
    judged = found.seen - found.statuses.get("not_sampled", 0)
    rest = ", ".join(f"{count:,} {status}" for status, count in found.statuses.items() if status != "not_sampled")
    table.add_row("judged", f"{judged:,} of {answers:,} answers{f': {rest}' if rest else ''}")
    if judged < answers:
        table.add_row("", "a sample: judge.base_rate and more of a quiet project, see docs/judging.md")
    if found.mean_faithfulness is not None:
        label = " (lexical baseline: words, not meaning)" if found.backend == "lexical" else f" ({found.backend})"
        table.add_row("mean faithfulness", f"{found.mean_faithfulness:.3f}{label}")
    if degraded_ms is not None:
        table.add_row("service degraded", f"at {datetime.fromtimestamp(degraded_ms / 1000, UTC):%H:%M:%S}Z")
    for alert in alerts:
        after = "" if degraded_ms is None else f", {(int(alert['stored_ms']) - degraded_ms) / 1000:.0f} s after"
        place = "; in Alertmanager" if arrived and alert["alert_id"] in arrived else ""
        table.add_row(f"alert {alert['state']}", f"{alert['summary']}{after}{place}")
    if not alerts:
        table.add_row("alerts", "none", style="" if degraded_ms is None else "bold red")
    return Group(Text(), table)


#: Shortest event that the gateway accepts.
EVENT = (
    '[{"kind":"retrieval","payload":{"tool_name":"search","query":"boots","retrieved_slugs":["boots/alpine"],'
    '"retrieved_chunk_ids":[7],"latency_ms":12.5}}]'
)


def where_to_look(
    data: Path,
    ports: Ports,
    program: str = "assay",
    python: str = "python",
    *,
    stopped: str | None = None,
    gateway_cert: Path | None = None,
    console: str = "",
) -> RenderableType:
    """Return commands to copy.

    `program` calls Assay from the working directory; `python` is the interpreter with the SDK.

    `stopped`: for a system that does not keep running, the command that restarts it. `gateway_cert`: the certificate of a
    gateway with TLS. `console`: how people open the console; empty: the command that makes a link.
    """
    option = "" if data.resolve() == Path("data").resolve() else f" --data {shlex.quote(str(data))}"
    program, curl = shlex.quote(program), f"curl -s -K {shlex.quote(str(data / 'secrets/sre.curl'))}"
    send, http = f"curl -s -K {shlex.quote(str(data / FILE))}", f"http://127.0.0.1:{ports.gateway_http}"
    if gateway_cert:
        send, http = f"{send} -S --cacert {shlex.quote(str(gateway_cert))}", http.replace("http:", "https:")
    latest = "SELECT query, retrieved_slugs FROM assay.candidates ORDER BY created_at DESC LIMIT 3"
    count = "SELECT count() FROM assay.candidates"
    scrubber, writer, store = (f"http://127.0.0.1:{port}" for port in (ports.scrubber, ports.writer, ports.store))
    producer = shlex.quote(str(data / "secrets/producer.toml"))
    lines = [
        ("SQL", f'{program} query{option} "{latest}"'),
        ("SQL over HTTP", f'{curl} {store}/ --data-binary "{count}"'),
        ("export", f"{program} export{option} --since 1d"),
        ("live tail", f"{program} tail{option}"),
        ("health", f"curl -s {scrubber}/readyz {writer}/readyz"),
        ("metrics", f"curl -s {scrubber}/metrics {writer}/metrics"),
        ("capture your own", f"ASSAY_CAPTURE=1 ASSAY_CONFIG={producer} {shlex.quote(python)} your_service.py"),
        ("events over HTTP", f"{send} {http}/v1/events -d '{EVENT}'"),
        ("quality", f"{program} query{option} quality"),
        ("alerts", f"{program} alerts list{option}"),
        ("sessions of agents", f"{program} sessions list{option}"),
        ("logs", f"{data / 'logs'}/"),
    ]
    text = Text.assemble(("Where to look next\n", "bold"))
    if stopped:
        text.append(f"  the system is stopped; to use these, start it again with `{stopped}`\n")
    for name, line in lines:
        text.append(f"  {name}\n", style="dim")
        text.append(f"    {line}\n")
    text.append("  console\n", style="dim")
    text.append(f"    {console or f'{program} console url{option}'}\n", style="bold" if console else "")
    return text


def start_again(data: Path, ports: Ports, program: str, *, by_make: bool) -> str:
    """Return the command that starts the same system and keeps it running.

    `by_make`: True if `make run` starts this program.
    """
    default = data.resolve() == Path("data").resolve()
    moved = ports != Ports.from_base(DEFAULT_PORT_BASE)
    if by_make and default:
        return f"make run PORT_BASE={ports.redis}" if moved else "make run"
    option = "" if default else f" --data {shlex.quote(str(data))}"
    return f"{shlex.quote(program)} up{option}{f' --port-base {ports.redis}' if moved else ''}"


def megabytes(size: int) -> str:
    """Format bytes as MB."""
    return f"{size / 1e6:,.0f} MB"


def moment(watermark: int) -> str:
    """Format the time of a watermark, at most the current time.

    After a restart of Redis, watermarks are ahead of the clock for up to a minute.
    """
    if not watermark:
        return "nothing yet"
    return f"{min(datetime.fromtimestamp(row_ms(watermark) / 1000, UTC), datetime.now(UTC)):%Y-%m-%d %H:%M:%S}Z"


def _events(report: Report, run: Run) -> Table:
    table = Table(
        title=f"Events of this run ({report.questions} questions, {report.seconds:.1f} s)", title_justify="left"
    )
    for heading in ("kind", "captured", "stored"):
        table.add_column(heading, justify="left" if heading == "kind" else "right")
    for kind in _names(report.captured, run.stored):
        table.add_row(kind, f"{report.captured.get(kind, 0):,}", f"{run.stored.get(kind, 0):,}")
    table.add_section()
    for reason, count in run.failed.items():
        table.add_row(f"failed: {reason}", "", f"{count:,}")
    if not run.failed:
        table.add_row("failed", "", "0")
    verdict = "all accounted for" if reconciled(report, run) else f"{report.total - run.accounted:+,} not accounted for"
    table.add_row(
        "total",
        f"{report.total:,}",
        f"{run.accounted:,}  {verdict}",
        style="bold" if reconciled(report, run) else "bold red",
    )
    return table


def _scrubbed(report: Report, run: Run) -> Table:
    counted = "Findings are counted in every event, so a question counts in its answer too; the documentation contains addresses too."
    table = Table(title="Personal data", title_justify="left", caption=counted, caption_justify="left")
    for heading in ("family", "questions planted with it", "findings scrubbed"):
        table.add_column(heading, justify="left" if heading == "family" else "right")
    for family in _names(report.planted, run.families):
        table.add_row(family, f"{report.planted.get(family, 0):,}", f"{run.families.get(family, 0):,}")
    return table


def _facts(report: Report, run: Run, lag: Lag, watermark: int, memory: Mapping[str, int]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("lag", f"{lag} (entries)")
    table.add_row("watermark", f"{watermark} ({moment(watermark)}): everything captured up to then is stored")
    if run.p50_ms is not None and run.p99_ms is not None:
        table.add_row("capture to stored", f"p50 {run.p50_ms:,.0f} ms, p99 {run.p99_ms:,.0f} ms")
    if report.held_back:
        table.add_row("not sent", report.held_back, style="bold red")
    parts = ", ".join(f"{name} {megabytes(size)}" for name, size in memory.items())
    table.add_row("memory (RSS)", f"{megabytes(sum(memory.values()))}: {parts}")
    return table


def _names(*counts: Mapping[str, int]) -> Iterable[str]:
    return sorted({name for count in counts for name in count})
