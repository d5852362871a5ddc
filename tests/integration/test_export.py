"""`assay export` against the real store: every byte of it is a contract with whoever replays it."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from assay_operations.export.sql import SOURCES
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.export import ROWS, AnswerRow, FeedbackRow, RetrievalRow
from assay_schema.fields import Kind
from assay_schema.ids import first_row_at, row_id
from tests.support.cli import Cli, stop
from tests.support.sample_rows import MAKE, Json, answer, candidate, event_id_at, feedback, iso, lines
from tests.support.store import StoreServer

SEED_FIELDS = [
    "schema_version", "id", "tool_name", "query", "retrieved_slugs", "retrieved_chunk_ids", "source_ids", "expand_enabled", "detail",
    "detail_resolved", "vector_enabled", "expansion_applied", "latency_ms", "remote", "job_id", "subagent_id", "created_at",
]  # fmt: skip
HOSTILE = [
    "",
    " ",
    "'\"`\\",
    "\\\\' OR 1=1 --",
    "line\nfeed\r\n\ttab",
    "null\0byte and \x01\x1f\x7f controls",
    "👩‍👩‍👧 🇩🇪 e\u0301 ﷽",
    "\u2028 and \u2029 and \ufeff",
    "\u202e right to left \u202c",
    '{"json": [1, null]}',
    '"}\n{"schema_version":1,"id":1}',
    "</script><!-- %s %n {0} ${x}",
    "\\u0041 \\n \\N",
    "x" * 51_200,
    "😀" * 51_200,
]


class Sink:
    """The store, and what the writer would do with it."""

    def __init__(self, server: StoreServer, owner: Client, cli: Cli) -> None:
        self.server, self.owner, self.cli = server, owner, cli

    def insert(self, rows: list[Json], table: str = "candidates") -> None:
        insert_json_rows(self.owner, f"assay_base.{table}", lines(rows), len(rows))

    def advance(self, watermark: int) -> None:
        self.owner.command(f"INSERT INTO assay_base.watermarks VALUES (0, {watermark}, now64(3))")

    def export(self, *arguments: str) -> "Export":
        return Export(self.cli.call("export", *arguments, role="exporter"))


class Export:
    """What one export printed."""

    def __init__(self, done: "subprocess.CompletedProcess[bytes]") -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr.decode()
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
        self.ids = [row["id"] for row in self.rows]

    @property
    def cursor(self) -> int:
        last = self.err.splitlines()[-1]
        assert last.startswith(f"exported {len(self.rows)} row(s); cursor ")
        return int(last.rpartition(" ")[2])


@pytest.fixture
def sink(migrated: StoreServer, tmp_path: Path) -> Iterator[Sink]:
    """A store without rows, whose watermark is 0."""
    owner = connect(migrated.settings().store)
    for table in ("candidates", "answers", "feedback", "watermarks"):
        owner.command(f"TRUNCATE TABLE assay_base.{table}")
    owner.command("INSERT INTO assay_base.watermarks VALUES (0, 0, now64(3))")
    yield Sink(migrated, owner, Cli(tmp_path, store_url=migrated.url))
    owner.close()


def row(ms: int, sequence: int = 0, **fields: Any) -> Json:
    """A retrieval that arrived as a given entry of the log."""
    number = row_id(f"{ms}-{sequence}")
    return candidate(id=number, created_at=iso(ms), event_id=event_id_at(ms - 5), occurred_at=iso(ms - 5), **fields)


NOW = int(time.time() * 1000)


def test_nothing_to_export_is_no_byte_and_exit_0(sink: Sink) -> None:
    export = sink.export()
    assert (export.code, export.out, export.err) == (0, b"", "exported 0 row(s); cursor 0\n")


def test_a_row_comes_back_as_it_went_in_field_by_field(sink: Sink) -> None:
    made = row(NOW, query="where is [REDACTED]", job_id=2**53 - 1, subagent_id=-(2**53) + 1)
    sink.insert([made])
    sink.advance(made["id"])
    export = sink.export()
    found = export.rows[0]
    assert list(found) == list(RetrievalRow.model_fields)
    assert list(found)[:17] == SEED_FIELDS
    assert export.out.startswith(b'{"schema_version":1,"id":')
    expected = {**made, "params": json.loads(made["params"]), "occurred_at": made["occurred_at"].replace("Z", "000Z")}
    assert found == expected
    assert export.cursor == made["id"]


def test_json_types_are_exact(sink: Sink) -> None:
    params = '{"big":12345678901234567890,"float":1.0,"small":5e-324,"a.b":{"c":[1,null,"x"]},"A":1,"a":2,"null":null,"dup":""}'
    scores = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e21, 1e-7, 3.0]
    made = row(NOW, params=params, retrieved_scores=scores, latency_ms=1e-9, retrieved_chunk_ids=[2**53 - 1, -7, 7, 7])
    sink.insert([made])
    sink.advance(made["id"])
    text = sink.export().out.decode()
    assert f'"params":{params},' in text
    found = json.loads(text)
    assert found["retrieved_scores"] == scores
    assert found["latency_ms"] == 1e-9
    assert found["retrieved_chunk_ids"] == [2**53 - 1, -7, 7, 7]


def test_null_is_null_and_empty_is_empty(sink: Sink) -> None:
    made = row(
        NOW, tool_name="search", expand_enabled=None, detail=None, detail_resolved=None, embedding_model=None,
        retrieved_slugs=[], retrieved_chunk_ids=[], source_ids=[], retrieved_scores=[], params="{}", pii_families={},
    )  # fmt: skip
    sink.insert([made])
    sink.advance(made["id"])
    found = sink.export().rows[0]
    nulls = ["expand_enabled", "detail", "detail_resolved", "job_id", "subagent_id", "traceparent", "embedding_model"]
    assert [found[name] for name in nulls] == [None] * len(nulls)
    assert [found[name] for name in ("retrieved_slugs", "retrieved_chunk_ids", "source_ids", "retrieved_scores")] == [
        []
    ] * 4
    assert (found["params"], found["pii_families"]) == ({}, {})


def test_hostile_text_survives_in_every_place_that_holds_text(sink: Sink) -> None:
    names = [text for text in HOSTILE if len(text) < 1_000]
    made = [
        row(NOW + n, query=text, retrieved_slugs=names, source_ids=names[::-1], service=f"s{text[:40]}", policy=text[:99],
            embedding_model=text[:99], params=json.dumps({text[:99]: text}), pii_families={text[:20] or "x": 1})
        for n, text in enumerate(HOSTILE)
    ]  # fmt: skip
    sink.insert(made)
    sink.advance(made[-1]["id"])
    export = sink.export()
    assert export.out.count(b"\n") == len(made)
    for found, sent in zip(export.rows, reversed(made), strict=True):
        for name in ("query", "retrieved_slugs", "source_ids", "service", "policy", "embedding_model", "pii_families"):
            assert found[name] == sent[name], name
        assert found["params"] == json.loads(sent["params"])


def test_answers_and_feedback_have_their_own_rows(sink: Sink) -> None:
    text = "".join(HOSTILE[:12])
    context = {"id": text, "source_id": None, "text": text, "score": 0.1 + 0.2}
    answers = [
        answer(1, answer=text, contexts=[context, {**context, "source_id": text, "score": None}],
               citations=[{"context_id": text, "claim": text}, {"context_id": "c", "claim": None}]),
        answer(2, contexts=[], citations=[], retrieval_event_id=event_id_at(NOW)),
    ]  # fmt: skip
    opinions = [feedback(3, text=text, user_hash=text[:50]), feedback(4, verdict="negative")]
    sink.insert(answers, "answers")
    sink.insert(opinions, "feedback")
    sink.advance(opinions[-1]["id"])
    for kind, sent, model in (("answer", answers, AnswerRow), ("feedback", opinions, FeedbackRow)):
        export = sink.export("--kind", kind)
        assert [list(found) for found in export.rows] == [list(model.model_fields)] * 2
        for found, made in zip(export.rows, reversed(sent), strict=True):
            assert found == {**made, "occurred_at": made["occurred_at"].replace("Z", "000Z")}
    assert sink.export().out == b""


@pytest.mark.parametrize(
    ("kind", "model", "make"),
    [(kind, ROWS[kind], MAKE[kind]) for kind in Kind],
)
def test_every_line_is_valid_by_the_published_model(
    sink: Sink, kind: Kind, model: type[BaseModel], make: Callable[..., Json]
) -> None:
    table = SOURCES[kind].view
    rows = [make(n, project=f"p{n % 3}", pii_families={"email": n}) for n in range(200)]
    sink.insert(rows, table)
    sink.advance(rows[-1]["id"])
    export = sink.export("--kind", kind)
    assert len(export.rows) == 200
    for line in export.out.splitlines():
        model.model_validate_json(line)


def test_newest_comes_first_and_ties_of_a_millisecond_go_by_id(sink: Sink) -> None:
    rows = [row(NOW + ms, sequence) for ms in range(5) for sequence in range(400)]
    rows.append(
        {**row(NOW + 2), "id": first_row_at(NOW + 3) + 8_191, "event_id": event_id_at(NOW)}
    )  # numbered past its millisecond
    shuffled = random.Random(7).sample(rows, len(rows))
    for start in range(0, len(shuffled), 500):
        sink.insert(shuffled[start : start + 500])
    sink.advance(first_row_at(NOW + 10))
    export = sink.export()
    order = [(found["created_at"], found["id"]) for found in export.rows]
    assert order == sorted(order, reverse=True)
    assert sorted(export.ids) == sorted(made["id"] for made in rows)
    assert sink.export("--limit", "7").ids == export.ids[:7]


def test_a_retry_of_the_producer_is_one_row_and_keeps_its_first_number(sink: Sink) -> None:
    first = row(NOW)
    sink.insert([first])
    sink.insert([{**first, "id": first["id"] + 2, "query": "later copy"}])
    sink.advance(first["id"] + 2)
    assert sink.export().ids == [first["id"]]
    assert sink.export("--since", str(first["id"])).out == b""


def test_filters_narrow_it(sink: Sink) -> None:
    rows = [row(NOW + n, tool_name=tool, project=project) for n, (tool, project) in enumerate(
        [("query", "a"), ("search", "a"), ("query", "b"), ("search", "b")])]  # fmt: skip
    sink.insert(rows)
    sink.advance(rows[-1]["id"])
    ids = [made["id"] for made in rows]
    assert sink.export("--tool", "query").ids == [ids[2], ids[0]]
    assert sink.export("--tool", "search", "--project", "b").ids == [ids[3]]
    assert sink.export("--project", "it's none").out == b""


def test_times_are_edges_by_arrival_and_the_upper_one_is_included(sink: Sink) -> None:
    rows = [row(NOW - 10_000 + n * 1_000, sequence) for n in range(10) for sequence in (0, 1)]
    sink.insert(rows)
    sink.advance(rows[-1]["id"])
    since, until = rows[4]["created_at"], rows[8]["created_at"]
    export = sink.export("--since", since, "--until", until)
    assert sorted(export.ids) == [made["id"] for made in rows if since < made["created_at"] <= until]
    after = sink.export("--since", str(export.cursor))
    assert sorted(after.ids) == [made["id"] for made in rows if made["created_at"] > until]
    assert len(sink.export("--since", "1h").ids) == 20
    assert sink.export("--until", "1h").out == b""


def test_nothing_above_the_watermark_is_exported(sink: Sink) -> None:
    rows = [row(NOW + n) for n in range(10)]
    sink.insert(rows)
    sink.advance(rows[5]["id"])
    export = sink.export()
    assert export.ids == [made["id"] for made in rows[5::-1]]
    assert export.cursor == rows[5]["id"]
    assert sink.export("--until", str(rows[8]["id"])).ids == export.ids


def test_windows_chained_while_rows_arrive_hold_every_row_once(sink: Sink, tmp_path: Path) -> None:
    """Rows become visible out of order and late, as redelivery makes them; the watermark follows behind."""
    chance = random.Random(11)
    rows = [row(NOW + n // 3, n % 3, project=f"p{n % 2}") for n in range(3_000)]
    waiting = list(rows)
    stored: set[int] = set()
    exported: list[int] = []
    cursor_file = tmp_path / "cursor"
    while True:
        batch = [waiting[i] for i in sorted(chance.sample(range(min(len(waiting), 600)), min(len(waiting), 300)))]
        for made in batch:
            waiting.remove(made)
        if batch:
            sink.insert(batch)
            stored |= {made["id"] for made in batch}
            sink.insert(chance.sample(batch, 20))  # redelivered
        sink.advance(waiting[0]["id"] - 1 if waiting else rows[-1]["id"])
        export = sink.export("--cursor-file", str(cursor_file))
        assert int(cursor_file.read_text()) == export.cursor
        exported += export.ids
        if not waiting:
            break
    assert len(exported) == len(set(exported)), "no row twice"
    assert set(exported) == {made["id"] for made in rows} == stored, "no row missed"


def test_a_cursor_file_is_written_only_after_success(sink: Sink, tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    path.write_text("12\n")
    sink.insert([row(NOW)])
    sink.advance(first_row_at(NOW + 1))
    sink.owner.command("RENAME TABLE assay.candidates TO assay.hidden")
    try:
        export = sink.export("--cursor-file", str(path))
    finally:
        sink.owner.command("RENAME TABLE assay.hidden TO assay.candidates")
    assert export.code == 2
    assert "cursor" not in export.err
    assert path.read_text() == "12\n"
    assert sink.export("--cursor-file", str(path), "--since", "0").code == 0
    assert int(path.read_text()) == first_row_at(NOW + 1)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--since", "yesterday"], "--since: 'yesterday' is neither a duration"),
        (["--until", "7w"], "--until: '7w' is neither"),
        (["--since", "99999999999999999"], "--since: '99999999999999999' is not a cursor"),
        (["--limit", "0"], "--limit: 0 is below 1"),
        (["--limit", "-5"], "--limit: -5 is below 1"),
        (["--limit", "many"], "--limit"),
        (["--tool", "grep"], "--tool: 'grep' is not one of query, search"),
        (
            ["--kind", "vision"],
            "--kind: 'vision' is not one of retrieval, answer, feedback, tool_call, server_event, session",
        ),
        (["--kind", "answer", "--tool", "query"], "--tool: rows of kind answer have no tool"),
        (["--since", "1h", "--until", "2h"], "--until 2h is before --since 1h"),
        (["--limit", "5", "--cursor-file", "c"], "--limit with --cursor-file would permanently skip"),
        (["--progress", "loud"], "--progress"),
    ],
)
def test_bad_usage_names_the_option_and_exits_2(sink: Sink, arguments: list[str], complaint: str) -> None:
    export = sink.export(*arguments)
    assert (export.code, export.out) == (2, b"")
    assert complaint in export.err
    assert "Traceback" not in export.err


def test_a_store_that_is_away_is_one_line_and_exit_2(tmp_path: Path) -> None:
    done = Cli(tmp_path).run("export", role="exporter")
    assert (done.returncode, done.stdout) == (2, b"")
    assert len(done.stderr.splitlines()) == 1
    assert b"store.url" in done.stderr


@pytest.fixture
def many(sink: Sink) -> Sink:
    """100,000 rows over three days, 120 MB of export, made by the store itself."""
    sink.owner.command(
        "INSERT INTO assay_base.candidates"
        " (schema_version, id, tool_name, query, vector_enabled, expansion_applied, latency_ms, remote,"
        " created_at, event_id, project, service, occurred_at, policy)"
        f" SELECT 1, bitShiftLeft({NOW} - 259200000 + number * 2592 - 1704067200000, 13), 'query', repeat(toString(number), 150),"
        f" true, false, 1, true, fromUnixTimestamp64Milli({NOW} - 259200000 + toInt64(number) * 2592, 'UTC') AS at,"
        " dateTimeToUUIDv7(toDateTime(at)), 'default', 's', at, 'p' FROM numbers(100000)"
    )
    sink.advance(first_row_at(NOW))
    return sink


def test_a_closed_pipe_ends_it_without_a_word(many: Sink, tmp_path: Path) -> None:
    process = many.cli.start("export", "--cursor-file", "cursor", role="exporter")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["schema_version"] == 1
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
        assert not (tmp_path / "cursor").exists()
    finally:
        stop(process)


def test_ctrl_c_ends_it_with_130_whole_lines_and_no_cursor(many: Sink, tmp_path: Path) -> None:
    process = many.cli.start("export", "--cursor-file", "cursor", role="exporter")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()
        assert len(rest.splitlines()) < 99_999, "it was interrupted, not finished"
        assert not (tmp_path / "cursor").exists()
    finally:
        stop(process)


def test_a_second_export_with_the_same_cursor_file_is_refused_and_exports_nothing(many: Sink, tmp_path: Path) -> None:
    process = many.cli.start("export", "--cursor-file", "cursor", role="exporter")
    try:
        assert process.stdout is not None
        process.stdout.readline()
        second = Export(many.cli.run("export", "--cursor-file", "cursor", role="exporter"))
        assert (second.code, second.out) == (2, b"")
        assert "another export is using cursor" in second.err
        assert sum(1 for _ in process.stdout) == 99_999
        assert process.wait(60) == 0
    finally:
        stop(process)
    third = Export(many.cli.run("export", "--cursor-file", "cursor", role="exporter"))
    assert (third.code, third.rows) == (0, [])


def test_a_store_that_dies_in_the_middle_is_an_error_and_no_cursor(many: Sink, tmp_path: Path) -> None:
    process = many.cli.start("export", "--cursor-file", "cursor", role="exporter")
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        many.server.kill()
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
        assert process.wait(60) == 2
        assert b"exported" not in err
        assert b"Traceback" not in err
        assert not (tmp_path / "cursor").exists()
        for line in (first + out).splitlines():
            RetrievalRow.model_validate_json(line)
    finally:
        stop(process)
        many.server.start()


def test_rows_that_are_pruned_while_it_runs_are_simply_not_there(many: Sink) -> None:
    process = many.cli.start("export", role="exporter")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        many.owner.command(
            f"ALTER TABLE assay_base.candidates DELETE WHERE created_at < fromUnixTimestamp64Milli({NOW - 180_000_000})",
            settings={"mutations_sync": 2},
        )
        ids = [json.loads(line)["id"] for line in (first + process.stdout.read()).splitlines()]
        assert process.wait(60) == 0
        assert process.stderr.read().splitlines()[-1].startswith(f"exported {len(ids)} row(s); cursor ".encode())
        assert ids == sorted(set(ids), reverse=True)
        kept = many.owner.query("SELECT count() FROM assay.candidates").result_rows[0][0]
        assert kept <= len(ids) < 100_000
    finally:
        stop(process)


def test_progress_for_machines_is_json_on_stderr_and_quiet_is_quiet(many: Sink) -> None:
    export = many.export("--progress", "json", "--since", "12h")
    *progress, last = export.err.splitlines()
    assert json.loads(progress[-1])["rows"] == len(export.rows) == json.loads(progress[-1])["total_rows"]
    assert last == f"exported {len(export.rows)} row(s); cursor {export.cursor}"
    assert many.export("--limit", "3", "--quiet").err.splitlines()[:-1] == []


def test_memory_of_the_command_does_not_grow_with_the_rows(many: Sink) -> None:
    def peak_mib(*arguments: str) -> float:
        process = many.cli.start("export", *arguments, "--quiet", role="exporter", stdout=subprocess.DEVNULL)
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
        finally:
            stop(process)
        return usage.ru_maxrss / 1024

    few, all_of_them = peak_mib("--limit", "10"), peak_mib()
    assert all_of_them < few + 50, "120 MB of rows went through"
