"""The audit log: writing, hashing, verifying and proving, each next to the plainest work that has the same result, in one run.

AUDIT_ROWS sets the number of rows; the default is 1,000,000. The rate of the pipeline is that of `assay up`, from the producer's first
append to the last visible row, while its auditor is suspended; then this auditor writes the log of the same tool calls, from a stop to the
last leaf, while the rest of the pipeline has nothing to do.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from assay_auditor.auditor import Auditor
from assay_auditor.merkle import leaf_hash
from assay_auditor.rows import leaf_data
from assay_operations.audit_log import PAGE, AuditLog
from assay_operations.audit_proofs import proof
from assay_operations.audit_verification import Result, verify
from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import Settings
from assay_schema.streams import CAPTURE, FIELD
from tests.bench.result import result
from tests.support.audited import ALL, settings_of
from tests.support.sample_rows import lines, tool_call
from tests.support.stack import System, command_of, running
from tests.support.store import StoreServer

#: Rows of one insert of the writer.
BATCH = 5_000
#: Rows that are hashed, and passes over them.
HASHED_ROWS, PASSES = 20_000, 3
#: Tool calls of the pipeline, those of one append, and seconds that it and the auditor have for all.
PIPED_ROWS, CHUNK, PIPED_WITHIN_S = 150_000, 250, 900.0
#: Processes that work on a tool call in the pipeline, and on its row in the log, by a part of their command lines.
PIPELINE, LOGGING = (
    ("redis", "valkey", "assay_scrubber", "assay_writer", "assay_store"),
    ("assay_auditor", "assay_store"),
)


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Return the results. `quick` only shows that everything runs."""
    rows = 3_000 if quick else int(os.environ.get("AUDIT_ROWS", "1000000"))
    calls = min(PIPED_ROWS, rows)
    with tempfile.TemporaryDirectory() as name, running(Path(name), "--no-quality") as system:
        piped, logged = _pipeline(system, calls)
    with tempfile.TemporaryDirectory() as name, StoreServer(Path(name) / "store") as store:
        migrate(store.settings())
        settings = settings_of(store, Path(name) / "log")
        written = _write(store, rows)
        audited = _audit(settings)
        with connect(store.settings("sre").store) as client:
            log = AuditLog(client, settings.auditor)
            assert log.size() == rows
            hashed, plain = _hashes(log)
            made_s, bundle = _proof(log, rows)
        checked, read = (_in_a_process(work, settings) for work in ("verify", "read"))
    return [
        result("rows logged by the auditor, compared with the pipeline that stored them", logged.rate, piped.rate, "rows/s", ">= 1", calls),
        result("CPU time of that, store included, compared with the pipeline", logged.cpu_s, piped.cpu_s, "s", "<= 1", calls),
        result("rows written by the auditor, compared with the writer's inserts", rows / audited, rows / written, "rows/s", None, rows),
        result("canonical rows hashed, compared with the standard library's JSON", hashed, plain, "rows/s", ">= 1", HASHED_ROWS),
        result("verification, compared with reading the same columns", rows / checked["s"], rows / read["s"], "rows/s", None, rows),
        result("CPU time of a verification, compared with reading", checked["cpu_s"], read["cpu_s"], "s", "<= 4", rows),
        result("peak memory of a verification, compared with reading", checked["mib"], read["mib"], "MiB", "<= 2", rows),
        result("time of one proof, compared with the whole verification", made_s, checked["s"], "s", "<= 1", rows),
        result("size of one proof, compared with its leaf", len(orjson.dumps(bundle)), len(bundle["leaf"]), "bytes", None, 1),
    ]  # fmt: skip


@dataclass(frozen=True)
class Piped:
    """Tool calls a second, and the CPU seconds of the processes that work on them."""

    rate: float
    cpu_s: float


def _pipeline(system: System, calls: int) -> tuple[Piped, Piped]:
    """Measure the pipeline from a producer to the store, then the auditor that finds the same tool calls there."""
    auditor = system.child("assay_auditor")
    auditor.suspend()
    now = datetime.now(UTC).isoformat()
    batches = [[_event(now) for _ in range(min(CHUNK, calls - start))] for start in range(0, calls, CHUNK)]
    with system.redis("producer") as client:
        used, started = _cpu_s(system, PIPELINE), time.perf_counter()
        for batch in batches:
            pipeline = client.pipeline(transaction=False)
            for data in batch:
                pipeline.xadd(CAPTURE.key(), {FIELD: data})
            pipeline.execute()
        _wait(system, "SELECT count() FROM assay_base.tool_calls", calls)
        piped = Piped(calls / (time.perf_counter() - started), _cpu_s(system, PIPELINE) - used)
    used, started = _cpu_s(system, LOGGING), time.perf_counter()
    auditor.resume()
    _wait(system, "SELECT uniqExact(leaf_index) FROM assay_base.audit_leaves WHERE kind = 'tool_call'", calls)
    return piped, Piped(calls / (time.perf_counter() - started), _cpu_s(system, LOGGING) - used)


def _cpu_s(system: System, names: Sequence[str]) -> float:
    """Return the CPU seconds that some processes of a system have used, by a part of their command lines."""
    used = 0.0
    for process in system.processes():
        if any(name in command_of(process) for name in names):
            times = process.cpu_times()
            used += times.user + times.system
    return used


def _event(at: str) -> bytes:
    """Return a tool call as a producer sends it."""
    payload = {
        "timestamp": at,
        "server_session_id": "run-1",
        "kind": "tool_call",
        "tool_name": "search_docs",
        "args_summary": {"query": "signing key"},
        "result_summary": {"matches": 3},
        "status": "success",
        "duration_ms": 47.5,
        "agent_name": "helper",
    }
    event = {
        "schema_version": 1,
        "event_id": new_event_id(),
        "kind": "tool_call",
        "project": "default",
        "service": "search",
    }
    return orjson.dumps(event | {"occurred_at": at, "payload": payload})


def _wait(system: System, query: str, rows: int) -> None:
    store = system.store("owner")
    deadline = time.monotonic() + PIPED_WITHIN_S
    while (found := int(store.command(query))) < rows:  # type: ignore[arg-type]
        if time.monotonic() > deadline:
            raise TimeoutError(f"{found} of {rows} rows after {PIPED_WITHIN_S} s: {query}")
        time.sleep(0.25)


def _calls(rows: int) -> Iterator[bytes]:
    for start in range(0, rows, BATCH):
        yield lines([tool_call(number) for number in range(start, min(rows, start + BATCH))])


def _write(store: StoreServer, rows: int) -> float:
    """Insert tool calls as the writer does. Returns the seconds of the inserts alone."""
    took = 0.0
    with connect(store.settings("writer").store) as client:
        for payload in _calls(rows):
            started = time.perf_counter()
            insert_json_rows(client, "assay_base.tool_calls", payload, len(payload.splitlines()))
            took += time.perf_counter() - started
        insert_json_rows(client, "assay_base.watermarks", lines([{"shard": 0, "watermark": ALL}]), 1)
    return took


def _audit(settings: Settings) -> float:
    auditor = Auditor(settings)
    started = time.perf_counter()
    while auditor.step():
        pass
    took = time.perf_counter() - started
    assert not auditor.problem, auditor.problem
    auditor.close()
    return took


def _hashes(log: AuditLog) -> tuple[float, float]:
    """Return rows a second: ours, and with `json` and `hashlib`, in turns."""
    rows = log.rows(0, min(HASHED_ROWS, log.size()))
    ours = plain = 0.0
    for _ in range(PASSES):
        started = time.process_time()
        hashes = [leaf_hash(leaf_data(row)) for row in rows]
        ours += time.process_time() - started
        started = time.process_time()
        same = [_plainly(row) for row in rows]
        plain += time.process_time() - started
        assert hashes == same
    return PASSES * len(rows) / ours, PASSES * len(rows) / plain


def _plainly(row: dict[str, Any]) -> bytes:
    document = {name: value for name, value in row.items() if name != "leaf_hash"} | {"v": "assay-audit-1"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"\x00" + text.encode()).digest()


def _proof(log: AuditLog, rows: int) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    bundle = proof(log, str(rows // 2))
    return time.perf_counter() - started, bundle


def _in_a_process(work: str, settings: Settings) -> dict[str, float]:
    """Return seconds, CPU seconds and the peak of resident memory of a process that does one thing."""
    store = settings.store
    given = [store.url, store.password.get_secret_value(), settings.auditor.origin, str(settings.auditor.directory)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.audit", work, *given], capture_output=True, check=True, timeout=3_600
    )
    found: dict[str, float] = orjson.loads(done.stdout)
    return found


def _work(work: str, client: Client, settings: Settings) -> None:
    log = AuditLog(client, settings.auditor)
    if work == "verify":
        outcome = Result()
        assert list(verify(log, outcome)) == []
        assert outcome.anchored == outcome.leaves == log.size()
        return
    for start in range(0, log.size(), PAGE):
        end = start + PAGE
        assert log.leaves(start, end)
        assert log.verified_rows(start, end)
        log.disclosures(start, end)


def _peak_mib() -> float:
    """Return the peak of resident memory of this program. `ru_maxrss` may be that of its parent before it started this."""
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


def _main(work: str, url: str, password: str, origin: str, directory: str) -> None:
    settings = Settings.model_validate(
        {
            "store": {"url": url, "user": "sre", "password": password},
            "auditor": {"origin": origin, "directory": directory},
        }
    )
    with connect(settings.store) as client:
        started, used = time.perf_counter(), time.process_time()
        _work(work, client, settings)
        figures = {"s": time.perf_counter() - started, "cpu_s": time.process_time() - used}
    sys.stdout.write(orjson.dumps(figures | {"mib": _peak_mib()}).decode())


if __name__ == "__main__":
    _main(*sys.argv[1:])
