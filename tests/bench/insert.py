"""Inserting: the writer's path through the HTTP store, beside the engine's own bulk load of the same rows, in turns in one run."""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from assay_runtime.entries import Entry
from assay_runtime.migrate import migrate, migrate_with
from assay_runtime.store import INSERT_SETTINGS, Client, connect, insert_json_rows
from assay_schema.ids import first_row_at
from assay_schema.settings import Settings
from assay_writer.batch import batches
from assay_writer.rows import COLUMNS, event_row
from tests.bench.result import result
from tests.support.sample_rows import event_id_at, iso
from tests.support.store import StoreServer

ROWS = 10_000
TARGET = ">= 0.5"
WORDS = [f"word{number:04d}" for number in range(2_000)]


def entries(count: int, seed: int) -> list[Entry]:
    """Scrubbed retrievals of about 1.4 KB as they stand in the stream, their times within one hour of now."""
    chance = random.Random(seed)
    start = int(time.time() * 1000) - 3_600_000
    return [Entry(f"{start + number}-0", orjson.dumps(_event(chance, start + number))) for number in range(count)]


def _event(chance: random.Random, ms: int) -> dict[str, Any]:
    hits = [chance.randrange(1_000_000) for _ in range(10)]
    return {
        "schema_version": 1,
        "id": first_row_at(ms),
        "created_at": iso(ms),
        "event_id": event_id_at(ms - 3),
        "kind": "retrieval",
        "project": chance.choice(("search", "support", "docs")),
        "service": "search-api",
        "occurred_at": iso(ms - 3),
        "traceparent": f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01",
        "pii_families": {"email": 1},
        "policy": "p1-6f1c2d",
        "payload": {
            "tool_name": "query",
            "query": " ".join(chance.choices(WORDS, k=25)),
            "retrieved_slugs": [f"guides/{chance.choice(WORDS)}" for _ in hits],
            "retrieved_chunk_ids": hits,
            "source_ids": ["handbook"],
            "expand_enabled": True,
            "detail": None,
            "detail_resolved": "medium",
            "vector_enabled": True,
            "expansion_applied": False,
            "latency_ms": round(chance.expovariate(0.02), 3),
            "remote": True,
            "job_id": None,
            "subagent_id": None,
            "retrieved_scores": [chance.random() for _ in hits],
            "embedding_model": "embed-3",
            "params": {"k": 10, "rrf": 60},
        },
    }


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Rows a second, medians of interleaved rounds: `ours` through HTTP, `anchor` the engine's FROM INFILE into the same tables."""
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory() as name, _engine(Path(name)) as load:
        directory = Path(name)
        with StoreServer(directory / "served") as store:
            migrate(store.settings())
            with connect(store.settings("writer").store) as client:
                times = [_round(client, load, directory / "rows.json", seed) for seed in range(rounds + 1)][1:]
    insert, step, anchor = (ROWS / statistics.median(column) for column in zip(*times, strict=True))
    return [
        result("insert 10,000 rows of 1.4 KB over HTTP", insert, anchor, "rows/s", TARGET, rounds),
        result("map 10,000 events to rows and insert them over HTTP", step, anchor, "rows/s", TARGET, rounds),
    ]


def _round(client: Client, load: Any, file: Path, seed: int) -> tuple[float, float, float]:
    """Seconds of: the insert alone, mapping and insert, the engine's own load. Fresh rows each, or the engine would skip them."""
    delivered, delivered_for_step = entries(ROWS, seed), entries(ROWS, seed)
    [batch], _ = batches(delivered, event_row)
    payload = batch.payload
    file.write_bytes(payload)
    started = time.perf_counter()
    insert_json_rows(client, "assay_base.candidates", payload, len(batch), COLUMNS[batch.table])
    inserted = time.perf_counter()
    [step], _ = batches(delivered_for_step, event_row)
    insert_json_rows(client, "assay_base.candidates", step.payload, len(step), COLUMNS[step.table])
    stepped = time.perf_counter()
    return inserted - started, stepped - inserted, load(file)


@contextmanager
def _engine(directory: Path) -> Iterator[Any]:
    """A process that holds an engine of its own; calling what is yielded loads a file and returns the seconds."""
    command = [sys.executable, "-m", "tests.bench.insert", str(directory / "engine")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        stdin, stdout = process.stdin, process.stdout

        def load(file: Path) -> float:
            stdin.write(f"{file}\n")
            stdin.flush()
            return float(stdout.readline())

        try:
            yield load
        finally:
            stdin.close()
            process.wait(30)


def _load_on_request(directory: str) -> None:
    import clickhouse_connect

    client = clickhouse_connect.get_client(interface="chdb", path=directory)
    migrate_with(client, Settings())
    settings = ", ".join(f"{name} = '{value}'" for name, value in INSERT_SETTINGS.items())
    columns = ", ".join(COLUMNS["candidates"])
    for line in sys.stdin:
        statement = (
            f"INSERT INTO assay_base.candidates ({columns}) FROM INFILE '{line.strip()}' SETTINGS {settings} "
            "FORMAT JSONCompactEachRow"
        )
        started = time.perf_counter()
        client.command(statement)
        sys.stdout.write(f"{time.perf_counter() - started}\n")
        sys.stdout.flush()
    client.close()


if __name__ == "__main__":
    _load_on_request(sys.argv[1])
