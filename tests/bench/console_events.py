"""Fill a store with events of every kind, as a service with answers, agents and a judge makes them, for pages to read."""

import time

from assay_auditor.notes import Checkpoint, Signer
from assay_runtime.store import Client, insert_json_rows
from assay_schema.settings import AuditorSettings
from tests.support.sample_rows import FINGERPRINT, failure, lines, session_part
from tests.support.store import ROLLUP_REFRESHES, refresh_rollups

#: The events are evenly spread over these days.
DAYS = 30
#: Rows of one INSERT, of each kind together: more would only need more memory.
_ROWS_AT_ONCE = 500_000
#: What counts rows that were stored some time ago; the refresh of each minute does not.
_REPAIRS = ("rollup_minute_repair", "rollup_hour_repair", "rollup_day_repair")
#: Imported sessions, and events that were lost.
_SESSIONS, _FAILURES = 1_000, 200
_WORDS = (
    "how", "does", "the", "alpine", "jacket", "return", "policy", "cover", "boots", "worn", "once", "delivery", "size", "guarantee",
    "waterproof", "seam", "repair", "order", "address", "change", "refund", "warranty", "strap", "buckle", "rope", "tent", "stove",
)  # fmt: skip
#: The time and the last half of the id of the event with a number: each kind has its own.
_AT = "({first_ms} + intDiv(number * {span_ms}, {rows}) + {after_ms})"
_ID = (
    "reinterpretAsUUID(bitOr(bitShiftLeft(toUInt128(bitOr(bitShiftLeft(toUInt64(2), 62), number * 8 + {kind})), 64),"
    " toUInt128(bitOr(bitShiftLeft(toUInt64({at}), 16), 28672))))"
)


def _words(count: int, seed: int) -> str:
    """Return the SQL of a text of so many words."""
    words = ", ".join(f"'{word}'" for word in _WORDS)
    picked = f"arrayMap(each -> [{words}][1 + cityHash64(number, each, {seed}) % {len(_WORDS)}], range({count}))"
    return f"arrayStringConcat({picked}, ' ')"


def fill(owner: Client, rows: int) -> None:
    """Insert `rows` events of five projects, scores of some answers, sessions, failures, and rows of the audit log; then count the rollups.

    Of ten events, five are retrievals, two and a half are answers to half of them, two are tool calls of agents and half an event is
    feedback. Everything was stored an hour ago.
    """
    for view in ROLLUP_REFRESHES:
        owner.command(f"SYSTEM STOP VIEW assay_base.{view}")
    span_ms = DAYS * 86_400_000
    numbers = {"first_ms": int(time.time() * 1000) - span_ms - 60_000, "span_ms": span_ms, "rows": rows}
    for start in range(0, rows, _ROWS_AT_ONCE):
        for table, columns, values, where in _kinds(numbers):
            owner.command(
                f"INSERT INTO assay_base.{table} ({', '.join(columns)}) SELECT {', '.join(values)}"
                f" FROM numbers({start}, {min(_ROWS_AT_ONCE, rows - start)}) WHERE {where}",
                settings={"max_partitions_per_insert_block": 0, "max_insert_threads": 2},
            )
        _count(owner)
    made = [
        session_part(number, project=f"p{number % 5}", days_old=number * DAYS / _SESSIONS)
        for number in range(_SESSIONS)
    ]
    insert_json_rows(owner, "assay_base.session_parts", lines(made), len(made))
    lost = [failure(number, project=f"p{number % 5}", days_old=number * 2 / _FAILURES) for number in range(_FAILURES)]
    insert_json_rows(owner, "assay_base.capture_failures", lines(lost), len(lost))
    _audit(owner)
    _count(owner)  # hours that two parts share, which one repair may leave to the next
    for view in ROLLUP_REFRESHES:
        owner.command(f"SYSTEM START VIEW assay_base.{view}")
    for view in ("rollup_minute", "rollup_hour", "rollup_day"):
        [[counted]] = owner.query(f"SELECT sum(events) FROM {view}").result_rows
        assert counted >= rows, f"{view} counts {counted:,} of {rows:,} events: pages would read without it"


def _count(owner: Client) -> None:
    """Count in the rollups what they lack, a part of the events at a time: all of them at once need gigabytes."""
    for view in _REPAIRS:
        owner.command(f"SYSTEM START VIEW assay_base.{view}")
    refresh_rollups(owner, _REPAIRS)
    for view in _REPAIRS:
        owner.command(f"SYSTEM STOP VIEW assay_base.{view}")


def _kinds(numbers: dict[str, int]) -> list[tuple[str, list[str], list[str], str]]:
    """Return table, columns, the SQL of their values, and which numbers are of this kind."""

    def at(after_ms: int) -> str:
        return _AT.format(after_ms=after_ms, **numbers)

    def event_id(kind: int, after_ms: int) -> str:
        return _ID.format(kind=kind, at=at(after_ms))

    def envelope(kind: int, after_ms: int) -> dict[str, str]:
        return {
            "schema_version": "1",
            "id": f"toUInt64({at(after_ms)}) * 1000 + number % 1000",
            "created_at": f"fromUnixTimestamp64Milli({at(after_ms)} + 5)",
            "event_id": event_id(kind, after_ms),
            "project": "'p' || toString(intDiv(number, 10) % 5)",
            "service": "'s' || toString(intDiv(number, 50) % 4)",
            "occurred_at": f"fromUnixTimestamp64Micro({at(after_ms)} * 1000)",
            "traceparent": "'00-' || leftPad(lower(hex(intDiv(number, 10) * 5 + number % 10 % 5 + 1)), 32, '0') || '-00000000000000aa-01'",
            "pii_families": "if(cityHash64(number, 5) % 4 = 0, map('email', toUInt64(1)), map())",
            "policy": "'p1'",
            "stored_at": "now64(3) - INTERVAL 1 HOUR",
        }

    asked = _words(9, 1).replace("number,", "intDiv(number, 10) * 5 + number % 10 % 5,")
    passages = (
        f"arrayMap(place -> CAST(('doc' || toString(place), NULL, {_words(40, 3)}, 0.9 - place / 10),"
        " 'Tuple(id String, source_id Nullable(String), text String, score Nullable(Float64))'), range(3))"
    )
    kinds = {
        # Of ten numbers, 0 to 4 are retrievals, and 5 to 7 answers to 0 to 2: the last of these only every other time.
        "candidates": (
            envelope(0, 0)
            | {
                "tool_name": "if(cityHash64(number, 1) % 2 = 0, 'query', 'search')",
                "query": asked,
                "retrieved_slugs": "['guide/' || toString(number % 1000), 'faq/' || toString(number % 77)]",
                "retrieved_chunk_ids": "if(number % 31 = 0, [], [number % 1000, number % 77])",
                "vector_enabled": "true",
                "expansion_applied": "false",
                "latency_ms": "exp(3 + randNormal(0, 1.2))",
                "retrieved_scores": "[0.9, 0.8]",
            },
            "number % 10 < 5",
        ),
        "answers": (
            envelope(1, 900)
            | {
                "query": asked,
                "answer": _words(50, 2),
                "contexts": passages,
                "citations": "[('doc0', NULL)]",
                "model": "'model-' || toString(number % 2)",
                "latency_ms": "exp(6 + randNormal(0, 0.5))",
                "retrieval_event_id": event_id(0, 0).replace("number", "(number - 5)"),
            },
            "number % 10 IN (5, 6) OR number % 20 = 7",
        ),
        "scores": (
            {
                "schema_version": "1",
                "score_id": "generateUUIDv4()",
                "event_id": event_id(1, 900),
                "project": envelope(1, 900)["project"],
                "service": envelope(1, 900)["service"],
                "judged_at": f"fromUnixTimestamp64Micro(({at(900)} + 2000) * 1000)",
                "status": "'scored'",
                "base": "true",
                "inclusion_probability": "0.1",
                "base_probability": "0.1",
                "metrics": "map('faithfulness', least(1, 0.7 + (cityHash64(number, 7) % 1000) / 2000))",
                "checks": "map('not_empty', true)",
                "fingerprint": f"'{FINGERPRINT}'",
                "backend": "'lexical'",
                "model": "'lexical-1'",
                "prompt_hash": "'00000000'",
                "schema_hash": "'00000000'",
                "claims": "2",
                "stored_at": "now64(3) - INTERVAL 1 HOUR",
            },
            "number % 40 = 5",
        ),
        "tool_calls": (
            envelope(2, 300)
            | {
                "timestamp": envelope(2, 300)["occurred_at"],
                "server_session_id": "'run-1'",
                "tool_name": "['search_docs', 'open_page', 'buy'][1 + number % 3]",
                "args_summary": _words(6, 4),
                "status": "if(number % 13 = 0, 'error', 'success')",
                "duration_ms": "exp(4 + randNormal(0, 1))",
                "session_id": "'run_' || toString(intDiv(number, 500) * 5 + intDiv(number, 10) % 5)",
                "seq": "number",
            },
            "number % 10 = 8 OR number % 20 = 17 OR number % 20 = 9",
        ),
        "feedback": (
            envelope(3, 60_000)
            | {
                "target_event_id": event_id(1, 900).replace("number", "(number - 4)"),
                "verdict": "if(number % 3 = 0, 'negative', 'positive')",
                "text": _words(8, 6),
            },
            "number % 20 = 19",
        ),
    }
    return [
        (table, list(values), [f"{sql} AS `{name}_`" for name, sql in values.items()], where)
        for table, (values, where) in kinds.items()
    ]


def _audit(owner: Client) -> None:
    """Insert a row of the audit log, its leaf and two disclosures for each tool call without one, and a checkpoint of all.

    Pages cost what they cost on a true log of this size, but the hashes and the root are made up: nothing here verifies.
    """
    signer = Signer(AuditorSettings().origin, bytes(32))
    [[start]] = owner.query("SELECT count() FROM assay_base.audit_leaves").result_rows
    made_up = "lower(hex(SHA256(concat('{}', toString(event_id)))))"
    calls = (
        f"SELECT *, '{signer.name}' AS log, {start} + row_number() OVER (ORDER BY id, event_id) - 1 AS leaf, "
        f"{made_up.format('leaf')} AS hash, [{made_up.format('a')}, {made_up.format('b')}] AS digests FROM assay_base.tool_calls "
        "WHERE event_id NOT IN (SELECT source_id FROM assay_base.audit_leaves)"
    )
    leaf = {"log": "log", "leaf_index": "leaf", "kind": "'tool_call'", "source_id": "event_id", "place": "id"}
    hashes = {"leaf_hash": "hash", "chain_hash": "hash"}
    row = {
        "created_at": "created_at", "project": "project", "service": "service", "duration_us": "toUInt64(duration_ms * 1000)",
        "id": "leaf + 1", "occurred_at": "occurred_at", "source_connection_id": "service", "tool_name": "tool_name", "status": "status",
        "cost_class": "'small'", "fingerprint": "hash", "fingerprint_version": "'fp-v1'", "sd": "digests",
    }  # fmt: skip
    disclosure = {"digest": "arrayJoin(digests)", "disclosure": "repeat(hash, 2)", "project": "project"}
    tables = {
        "audit_disclosures": {"log": "log", "leaf_index": "leaf", "created_at": "created_at"} | disclosure,
        "audit_rows": leaf | row | hashes,
        "audit_leaves": leaf | hashes,  # the last one: the query leaves out calls that have a leaf
    }
    for table, values in tables.items():
        columns, values_sql = ", ".join(values), ", ".join(values.values())
        owner.command(f"INSERT INTO assay_base.{table} ({columns}) SELECT {values_sql} FROM ({calls})")
    [[size, place]] = owner.query(
        "SELECT max(leaf_index) + 1, (SELECT max(id) FROM assay_base.tool_calls) FROM assay_base.audit_leaves"
    ).result_rows
    checkpoint = Checkpoint(signer.name, size, bytes(32))
    signed = {
        "log": signer.name, "size": size, "root": checkpoint.root.hex(), "note": signer.signed(checkpoint.text), "edge": [],
        "places": {"event": place},
    }  # fmt: skip
    insert_json_rows(owner, "assay_base.audit_checkpoints", lines([signed]), 1)
