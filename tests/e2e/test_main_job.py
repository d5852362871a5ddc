"""The main job as its users see it: captured by the SDK, scrubbed, stored, exported; nothing lost, nothing twice, no secret anywhere."""

import contextlib
import json
import os
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import redis

from assay_capture import Capture
from assay_demo.agent.scenes import read_scenes, scripted
from assay_evals import Verdict, read_dataset, run_gate
from assay_runtime.config import load_settings
from assay_schema.export import RetrievalRow
from assay_schema.ids import new_event_id
from assay_schema.published import published_schema
from assay_schema.streams import CAPTURE, DEAD, EVENTS, FAILURES, FIELD
from tests.support.cli import called
from tests.support.demo import planted_in, run_demo
from tests.support.stack import System, running
from tests.support.wait import until

pytestmark = [pytest.mark.slow, pytest.mark.bare_only, pytest.mark.timeout(900), pytest.mark.xdist_group("main-job")]

#: One of each family. None is real: documentation addresses, test card numbers, the telephone numbers of films.
PLANTED = {
    "email": "ada.planted@example.com",
    "phone": "(212) 555-0147",
    "us_ssn": "536-22-8726",
    "payment_card": "4012 8888 8888 1881",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlLXBsYW50ZWQ",
    "bearer_token": "planted0Token1With2Digits3",
    "connection_url": "postgres://planted:hunter2planted@db.example.com:5432/shop",
}
TEXT = (
    f"mail {PLANTED['email']} and call {PLANTED['phone']} and ssn {PLANTED['us_ssn']} and card {PLANTED['payment_card']} 12/29 and "
    f"token {PLANTED['jwt']} and Authorization: Bearer {PLANTED['bearer_token']} and at {PLANTED['connection_url']}"
)


@pytest.fixture(scope="module")
def system(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("system"), "--no-quality", tables=tables) as system:
        yield system


@pytest.fixture
def capture(system: System) -> Iterator[Capture]:
    settings = load_settings(system.data / "secrets/producer.toml")
    capture = Capture(
        settings.model_copy(update={"capture": settings.capture.model_copy(update={"enabled": True, "service": "e2e"})})
    )
    yield capture
    capture.close()


def assay(system: System, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = called(*arguments, "--data", str(system.data))
    return subprocess.CompletedProcess(arguments, done.returncode, done.stdout.decode(), done.stderr.decode())


def export(system: System, *arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Rows, and the cursor that stderr's last line names."""
    done = assay(system, "export", *arguments)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"exported {len(rows)} row(s); cursor ")
    return rows, last.rpartition(" ")[2]


def retrieve(capture: Capture, query: str, **changes: Any) -> str:
    fields: dict[str, Any] = {
        "tool_name": "query",
        "retrieved_slugs": ["a", "b"],
        "retrieved_chunk_ids": [1, 2, 2],
        "latency_ms": 3.5,
    }
    return capture.retrieval(query=query, **(fields | changes))


def stored(system: System, event_id: str, table: str = "candidates") -> dict[str, Any] | None:
    found = system.store("sre").query(
        f"SELECT * FROM assay.{table} WHERE event_id = {{id:UUID}}", parameters={"id": event_id}
    )
    return dict(zip(found.column_names, found.result_rows[0], strict=True)) if found.result_rows else None


def test_every_kind_that_is_captured_is_stored_scrubbed(system: System, capture: Capture) -> None:
    retrieval = retrieve(capture, TEXT, params={"filter": {"owner": PLANTED["email"]}, "card": 4012888888881881})
    answer = capture.answer(
        query=TEXT,
        answer=TEXT,
        contexts=[{"id": "a#1", "source_id": "a", "text": TEXT, "score": 1.0}],
        citations=[{"context_id": "a#1", "claim": TEXT}],
        model="m",
        latency_ms=8,
        retrieval_event_id=retrieval,
    )
    feedback = capture.feedback(target_event_id=answer, verdict="negative", text=TEXT)
    for event_id, table, texts in ((retrieval, "candidates", 1), (answer, "answers", 4), (feedback, "feedback", 1)):
        row = until(lambda event_id=event_id, table=table: stored(system, event_id, table), f"{table} has the event")
        assert all(row["pii_families"][family] >= texts for family in PLANTED), row["pii_families"]


def refused_with_planted_values() -> Iterator[bytes]:
    """Entries that cannot be stored and are full of planted values: where they are wrong, and beside it."""
    whole = {
        "schema_version": 1,
        "event_id": new_event_id(),
        "kind": "retrieval",
        "project": "refused",
        "service": "e2e",
        "occurred_at": datetime.now(UTC).isoformat(),
        "payload": {
            "tool_name": TEXT,
            "query": TEXT,
            "retrieved_slugs": [],
            "retrieved_chunk_ids": [],
            "latency_ms": 1,
        },
    }
    yield json.dumps(whole).encode()
    yield json.dumps(whole | {"event_id": new_event_id(), PLANTED["email"]: TEXT}).encode()


def base_tables(system: System) -> list[str]:
    """Tables that hold rows of their own, by name; the rollups' too."""
    sql = "SELECT name FROM system.tables WHERE database = 'assay_base' AND engine LIKE '%MergeTree'"
    tables = [name for (name,) in system.store("owner").query(sql).result_rows]
    assert {"candidates", "answers", "feedback", "capture_failures"} <= set(tables)
    return tables


def readable_files(system: System) -> Iterator[tuple[Path, bytes]]:
    """Files in which a text would be found as it is, and what they hold: logs, configuration, state, metadata, the spool.

    The store's columns, their marks and primary indexes are compressed, so SQL reads them instead; and Redis's append-only file keeps
    what was captured until its next rewrite, which docs/scrubbing.md says.
    """
    compressed = {".bin", ".cmrk2", ".cmrk3", ".cmrk4", ".cidx"}
    log = system.data.parent / "up.log"
    yield log, log.read_bytes()
    for directory in ("logs", "run", "spool", "store"):
        for folder, _, names in os.walk(system.data / directory):  # the store is at work: files and folders vanish
            for path in (Path(folder, name) for name in names):
                if path.suffix not in compressed and path.is_file():
                    with contextlib.suppress(FileNotFoundError):
                        yield path, path.read_bytes()


def test_no_planted_value_is_found_anywhere_after_it_was_drained(system: System, capture: Capture) -> None:
    for entry in refused_with_planted_values():
        system.redis("producer").xadd(CAPTURE.key(), {FIELD: entry})
    marker = retrieve(capture, f"the last one: {TEXT}")
    until(lambda: stored(system, marker), "everything is stored")
    raw = system.redis("owner")
    until(lambda: raw.xlen(CAPTURE.key()) == 0, "the raw stream is empty")
    refused = "SELECT detail FROM assay.capture_failures WHERE project = 'refused'"
    until(lambda: len(system.store("sre").query(refused).result_rows) == 2, "both refusals are stored")
    places = {
        "events": repr(system.redis("sre").xrange(EVENTS.key())),
        "failures": repr(system.redis("writer").xrange(FAILURES.key())),
        "dead": repr(system.redis("operator").xrange(DEAD.key())),
    }
    store = system.store("owner")
    for table in base_tables(system):
        places[table] = repr(store.query(f"SELECT * FROM assay_base.`{table}`").result_rows)
    assert all(detail in places["capture_failures"] for (detail,) in store.query(refused).result_rows)
    places |= {str(path): held.decode("latin-1") for path, held in readable_files(system)}
    for port in range(system.port_base + 1, system.port_base + 4):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            places[f"metrics {port}"] = answer.read().decode()
    places["tail"] = assay(system, "tail", "--no-follow", "--since", "1h", "--json").stdout
    assert "REDACTED" in places["events"]
    assert all("REDACTED" in places[table] for table in ("candidates", "answers", "feedback", "tail"))
    leaks = [(place, family) for place, text in places.items() for family, value in PLANTED.items() if value in text]
    assert leaks == []


def test_exported_lines_are_valid_newest_first_and_begin_with_the_seventeen_fields(
    system: System, capture: Capture
) -> None:
    last = [retrieve(capture, f"question {n} ☃\n\u2028", tool_name="search", expand_enabled=True) for n in range(40)][
        -1
    ]
    until(lambda: stored(system, last), "the last is stored")
    rows, _ = until(lambda: _with(export(system, "--since", "1d"), last), "the export has the last one")
    schema = jsonschema.Draft202012Validator(published_schema("export-retrieval"))
    for row in rows:
        schema.validate(row)
        assert list(row) == list(RetrievalRow.model_fields)
    assert [(row["created_at"], row["id"]) for row in rows] == sorted(
        ((r["created_at"], r["id"]) for r in rows), reverse=True
    )
    assert all(row["expand_enabled"] is None for row in rows if row["tool_name"] == "search")
    assert list(rows[0])[:17] == [
        "schema_version",
        "id",
        "tool_name",
        "query",
        "retrieved_slugs",
        "retrieved_chunk_ids",
        "source_ids",
        "expand_enabled",
        "detail",
        "detail_resolved",
        "vector_enabled",
        "expansion_applied",
        "latency_ms",
        "remote",
        "job_id",
        "subagent_id",
        "created_at",
    ]


def _with(exported: tuple[list[dict[str, Any]], str], event_id: str) -> tuple[list[dict[str, Any]], str] | None:
    return exported if any(row["event_id"] == event_id for row in exported[0]) else None


def test_an_export_is_published_gated_and_mined_as_it_is(system: System, tmp_path: Path) -> None:
    """What the demo's search answered, captured by the SDK and exported, holds changes of that search."""
    from assay_demo import target

    settings = load_settings(system.data / "secrets/producer.toml")
    questions = (
        "measure how long a block of code takes",
        "parse JSON",
        "compress a file with gzip",
        "delete a folder and all that is in it",
        "read a file line by line without loading it all",
        "find the most common words in a list",
        "run several coroutines at the same time",
        "send an e-mail with an attachment over SMTP",
        "write rows of a table to a CSV file",
        "keep a lock while a block of code runs",
        "parse the arguments of a command line",
        "copy a directory tree to another place",
    )
    fields = {"enabled": True, "service": "e2e", "project": "evaluated"}
    with contextlib.closing(
        Capture(settings.model_copy(update={"capture": settings.capture.model_copy(update=fields)}))
    ) as capture:
        for question in questions:
            hits = target.search(question)["results"]
            sources = sorted({hit["source_id"] for hit in hits})
            slugs = [hit["slug"] for hit in hits]
            last = retrieve(capture, question, retrieved_slugs=slugs, source_ids=sources, latency_ms=60_000)
        until(lambda: stored(system, last), "the last is stored")
    rows, baseline = tmp_path / "captured.ndjson", tmp_path / "main.baseline.ndjson"

    def exported() -> bool:
        done = assay(system, "export", "--since", "1d", "--project", "evaluated")
        rows.write_text(done.stdout)
        return len(done.stdout.splitlines()) == len(questions)

    until(exported, "the export has all of them")
    published = assay(system, "bench", "publish", "--from", str(rows), "--to", str(baseline))
    assert published.returncode == 0, published.stderr
    verdicts = [
        run_gate(change, baseline=baseline, inconclusive=Verdict.PASS)["verdict"]
        for change in (target.search, target.neutral, target.degraded)
    ]
    assert verdicts == ["pass", "pass", "fail"]
    mined = assay(system, "dataset", "mine", "--from", str(rows))
    assert {case.query for case in read_dataset(mined.stdout).cases} == set(questions), mined.stderr


@contextlib.contextmanager
def capturing(capture: Capture, sent: list[str]) -> Iterator[None]:
    """Capture from a thread without a pause for as long as the block runs; `sent` grows by each `event_id`."""
    over = threading.Event()

    def capture_on() -> None:
        while not over.wait(0.002):
            sent.append(retrieve(capture, f"while windows are exported {len(sent)}"))

    thread = threading.Thread(target=capture_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive()


def test_windows_that_chain_while_traffic_flows_hold_everything_once(system: System, capture: Capture) -> None:
    _, cursor = export(system, "--since", "1d")
    sent: list[str] = []
    windows: list[list[str]] = []

    def in_the_midst() -> bool:
        nonlocal cursor
        before = len(sent)
        rows, cursor = export(system, "--since", cursor)
        windows.append([row["event_id"] for row in rows])
        return len(sent) > before and sum(bool(set(window) & set(sent)) for window in windows) > 1

    with capturing(capture, sent):
        until(in_the_midst, "no second window ended in the midst of the traffic")
    assert capture.stats().dropped == {}
    until(lambda: stored(system, sent[-1]), "the last is stored")

    def rest() -> bool:
        nonlocal cursor
        rows, cursor = export(system, "--since", cursor)
        windows.append([row["event_id"] for row in rows])
        return sent[-1] in windows[-1]

    until(rest, "the last window ends")
    wanted = set(sent)
    exported = [event_id for window in windows for event_id in window if event_id in wanted]
    assert len(exported) == len(set(exported)), "no row twice"
    assert set(exported) == wanted, "no row missed"


def test_bad_entries_become_failures_with_their_rule_and_block_nobody(system: System, capture: Capture) -> None:
    producer = system.redis("producer")
    lost = "SELECT count() FROM assay.capture_failures WHERE entry_id IS NOT NULL"
    already = system.store("sre").command(lost)
    good = retrieve(capture, "good")
    long = retrieve(capture, "x" * 51_201)
    bad = (
        b"\xff\xfe",
        b"{",
        b'{"schema_version":2}',
        b'{"schema_version":1,"kind":"nope"}',
        b"[" * 3000,
        b'{"a":NaN}',
        b"",
    )
    for data in bad:
        producer.xadd(CAPTURE.key(), {FIELD: data})
    producer.xadd(CAPTURE.key(), {"other": "field"})
    after = retrieve(capture, "after")
    for event_id in (good, after):
        until(lambda event_id=event_id: stored(system, event_id), "good events are stored")
    sql = "SELECT error_class, count() FROM assay.capture_failures GROUP BY error_class"
    wanted = {"string_too_long", "invalid_utf8", "invalid_json", "schema_version", "unknown_kind"}
    until(lambda: wanted <= {row[0] for row in system.store("sre").query(sql).result_rows}, "each failure has its row")
    assert stored(system, long) is None
    until(
        lambda: system.store("sre").command(lost) == already + len(bad) + 2,
        "one row each",
    )


def test_a_second_entry_for_the_same_event_is_not_seen(system: System, capture: Capture) -> None:
    event_id = retrieve(capture, "sent twice after a time-out")
    first = until(lambda: stored(system, event_id), "stored")
    entries = system.redis("sre").xrange(EVENTS.key())
    original = next(json.loads(fields[b"data"]) for _, fields in entries if event_id.encode() in fields[b"data"])
    event = {key: value for key, value in original.items() if key not in ("id", "created_at", "pii_families", "policy")}
    system.redis("producer").xadd(CAPTURE.key(), {FIELD: json.dumps(event)})
    marker = retrieve(capture, "marker")
    until(lambda: stored(system, marker), "the marker is stored")
    again = stored(system, event_id)
    assert again is not None
    assert (again["id"], again["created_at"]) == (first["id"], first["created_at"])
    assert system.store("sre").command(f"SELECT count() FROM assay.candidates WHERE event_id = '{event_id}'") == 1


def test_nobody_can_do_more_than_their_part(system: System) -> None:
    producer, sre, scrubber, writer = (system.redis(name) for name in ("producer", "sre", "scrubber", "writer"))
    for stream in (CAPTURE, EVENTS, FAILURES, DEAD):
        with pytest.raises(redis.exceptions.NoPermissionError):
            producer.xrange(stream.key())
        with pytest.raises(redis.exceptions.NoPermissionError):
            sre.xadd(stream.key(), {FIELD: "x"})
    for client, stream in ((scrubber, EVENTS), (writer, CAPTURE), (sre, CAPTURE), (sre, DEAD)):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.xread({stream.key(): "0"})
    store = system.store("sre")
    for sql in (
        "SELECT * FROM assay_base.candidates",
        "INSERT INTO assay_base.candidates (id) VALUES (1)",
        "DROP TABLE assay.candidates",
        "SET readonly = 0",
        "SELECT * FROM file('/etc/passwd')",
        "CREATE TABLE assay.mine (x Int8) ENGINE = Memory",
    ):
        with pytest.raises(Exception, match=r"(?i)denied|privileges|readonly|not allowed|permission|access"):
            store.command(sql)


def test_an_outage_of_the_store_loses_nothing_and_is_recorded_once(system: System, capture: Capture) -> None:
    store = system.child("assay_store")
    sent = [retrieve(capture, f"before the outage {n}") for n in range(50)]
    store.kill()
    sent += [retrieve(capture, f"during the outage {n}") for n in range(200)]

    def all_stored() -> bool:
        try:
            found = system.store("sre").query(
                "SELECT event_id FROM assay.candidates WHERE query LIKE 'before the outage %' OR query LIKE 'during the outage %'"
            )
        except Exception:  # noqa: BLE001  # the store is still away
            return False
        return sorted(str(row[0]) for row in found.result_rows) == sorted(sent)

    until(all_stored, "everything is stored once the store is back")
    assert system.store("sre").command("SELECT count() = uniqExact(event_id) FROM assay.candidates") == 1


def test_the_demos_agent_is_stored_once_as_scripted_and_without_personal_data(system: System, tmp_path: Path) -> None:
    script, log = scripted(read_scenes()), tmp_path / "agent/sessions.jsonl"
    settings = {"ASSAY_CAPTURE": "1", "ASSAY_CONFIG": str(system.data / "secrets/producer.toml")}
    done = run_demo(tmp_path, settings, "--rounds", "0", "--no-pii", "--agent-log", str(log))
    assert done.returncode == 0, done.stderr
    stats, prefix = (json.loads(done.stdout.splitlines()[-1])[name] for name in ("stats", "agent"))
    assert (stats["published"] + stats["replayed"], stats["dropped"]) == (script.captured.total(), {})
    logged = script.sessions.total() - script.sessions["open"]
    for new in (logged, 0):
        imported = assay(system, "sessions", "import", "--from", "jsonl", str(log), "--quiet")
        assert f": {new} new or changed, {logged - new} already stored" in imported.stdout, imported.stderr
    store = system.store("sre")

    def counts(sql: str) -> dict[str, int]:
        rows = store.query(sql, parameters={"prefix": prefix["prefix"]}).result_rows
        return {str(name): int(number) for name, number in rows}

    tables = {"retrieval": "candidates", "answer": "answers", "feedback": "feedback", "tool_call": "tool_calls"}
    events = " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, {{count}} FROM assay.{table} WHERE startsWith(ifNull(session_id, ''), {{{{prefix:String}}}})"
        for kind, table in tables.items()
    )
    wanted = {kind: count for kind, count in script.captured.items() if kind in tables}
    until(lambda: counts(events.format(count="uniqExact(event_id)")) == wanted, "every event of it is stored")
    assert counts(events.format(count="count()")) == wanted, "and none twice"
    of_it = "WHERE startsWith(session_id, {prefix:String})"
    assert counts(f"SELECT status, count() FROM assay.tool_calls {of_it} GROUP BY status") == script.tool_calls
    assert counts(f"SELECT status, count() FROM assay.sessions {of_it} AND complete GROUP BY status") == script.sessions
    assert counts(f"SELECT 'parts', count() FROM assay.session_parts {of_it}") == {"parts": logged}
    rows = store.query("SELECT args_summary, result_summary FROM assay.tool_calls").result_rows
    places = [repr(rows), assay(system, "sessions", "export", "--quiet").stdout]
    assert all("REDACTED" in place or "redacted" in place for place in places)
    assert [value for value in planted_in(log) if any(value in place for place in places)] == []


def test_the_doctor_finds_the_system_well(system: System) -> None:
    done = assay(system, "doctor", "--json")
    checks = {check["check"]: check["status"] for check in json.loads(done.stdout)}
    assert done.returncode == 0, checks
    assert "fail" not in checks.values()


def test_data_survives_a_restart_and_the_numbers_go_on(system: System, capture: Capture, tmp_path: Path) -> None:
    last = retrieve(capture, "before the restart")
    until(lambda: stored(system, last), "stored")
    before, cursor = export(system, "--since", "1d")
    assert system.stop() == 0
    system.start()
    after, _ = export(system, "--since", "1d")
    assert [row["id"] for row in after if row["id"] <= int(cursor)] == [row["id"] for row in before]
    later = retrieve(capture, "after the restart")
    assert until(lambda: stored(system, later), "stored after the restart")["id"] > before[0]["id"]
