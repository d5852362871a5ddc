"""The identities and their rights. Pure.

The Redis users, the store's users and each identity's settings are generated from the table below. An identity has only the rights that
its work needs: a stolen producer password reads nothing, and a stolen scrubber password shows nothing that is stored.

In Redis each grant pairs commands with keys. Redis keeps the pairs separate as selectors, and also checks the commands within scripts
against them. Read and write key permissions would not be enough, because `EVALSHA` needs both on every key it names. Two limits of Redis
itself: `XADD` cannot be granted without its trimming options, and the reader of a consumer group can also read the stream without it.
"""

from dataclasses import dataclass

from assay_schema.streams import (
    ALERTS,
    CAPTURE,
    DEAD,
    EVENTS,
    FAILURES,
    PREFIX,
    SCORES,
    SPANS,
    acknowledged_key,
    alert_inbox_key,
    api_keys_key,
    calibration_key,
    drift_key,
    drift_seen_key,
    episodes_key,
    notices_key,
    numbered_key,
    open_bytes_key,
    open_traces_key,
    overflow_key,
    scrubbed_low_watermark_key,
    watermark_key,
)

_READ_AS_GROUP = (
    "xreadgroup", "xack", "xlen", "xrange", "xrevrange", "xpending", "xclaim", "xautoclaim",
    "xinfo|stream", "xinfo|groups", "xinfo|consumers", "xgroup|create", "xgroup|createconsumer", "xgroup|delconsumer", "xgroup|setid",
)  # fmt: skip
#: For the service that deletes the entries of a stream; other services only read it.
_READ_AND_EMPTY = (*_READ_AS_GROUP, "xdel", "xtrim")
_SERVICE = ("time", "info", "script|load", "script|exists")
_RUN_SCRIPTS = ("eval", "evalsha")
_OF_JUDGE = (
    "get", "set", "del", "incrby", "decrby", "pexpire", "hget", "hset", "hmget", "hgetall", "hdel", "hincrby", "hlen", "hscan",
    "zadd", "zcard", "zrem", "zscore", "zrange", "zrangebyscore",
)  # fmt: skip
#: Not `XINFO STREAM`: it shows the first and last entry.
_WATCH = ("xlen", "xpending", "xinfo|groups", "xinfo|consumers")

_capture, _events, _failures, _dead, _scores = (stream.key() for stream in (CAPTURE, EVENTS, FAILURES, DEAD, SCORES))
_spans, _open_traces, _open_bytes = SPANS.key(), open_traces_key(), open_bytes_key()
#: One key for each open trace, and one for each day of what made no event. Names contain projects and trace ids.
_traces, _unassembled = f"{PREFIX}:{{0}}:trace:*", f"{PREFIX}:{{0}}:unassembled:*"
#: One key for each answer of a trace, with its event id only.
_answers = f"{PREFIX}:{{0}}:answer:*"
_alerts, _alert_inbox = ALERTS.key(), alert_inbox_key()
_low, _watermark, _overflow, _numbered = scrubbed_low_watermark_key(), watermark_key(), overflow_key(), numbered_key()
_notices, _episodes = notices_key(), episodes_key()
_drift, _drift_seen, _acknowledged, _calibration = drift_key(), drift_seen_key(), acknowledged_key(), calibration_key()
_api_keys = api_keys_key()
#: The judge's own keys: spend, records of its calls, traffic. Their names contain projects and events.
_judge = f"{PREFIX}:{{0}}:judge:*"


@dataclass(frozen=True)
class Grant:
    """Commands on keys (named as of shard 0). Without keys: commands that need none."""

    commands: tuple[str, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identity:
    """A holder of credentials. Without grants: no Redis user. Without `store_role`: no user of the store."""

    name: str
    purpose: str
    grants: tuple[Grant, ...] = ()
    store_role: str | None = None


_watch = Grant(_WATCH, (_capture, _spans, _events, _failures, _dead, _scores, _alerts))
_tail = Grant(("xread", "xrange", "xrevrange", "xlen", "xinfo|stream"), (_events,))
_status = Grant(("hgetall", "hkeys"), (_drift, _acknowledged, _calibration))
_owner = (
    Grant(("time", "info")),
    _watch,
    Grant(("hgetall",), (_unassembled,)),
    Grant(("memory|usage",), (_dead,)),
    Grant(("get",), (_low, _watermark)),
)

IDENTITIES = (
    Identity(
        "producer",
        "Sends events; reads nothing.",
        (Grant(("wait",)), Grant(("xadd", "xlen", "memory|usage"), (_capture,))),
    ),
    Identity(
        "gateway",
        "Appends the events and spans of HTTP clients; reads their keys and the ids of answers, and no entry.",
        (
            Grant(("time", "info", "wait")),
            Grant(("xadd", "xlen", "memory|usage"), (_capture, _spans)),
            Grant(("hget", "hgetall"), (_api_keys,)),
            Grant(("get",), (_answers,)),
        ),
    ),
    Identity(
        "assembler",
        "Reads raw spans of OpenTelemetry, publishes raw events; sees no scrubbed event.",
        (
            Grant(_SERVICE),
            Grant(_READ_AND_EMPTY, (_spans,)),
            Grant(("xadd", "xlen", "xinfo|groups", "memory|usage"), (_capture,)),
            Grant(("xadd",), (_failures,)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(
                ("hget", "hset", "hsetnx", "hgetall", "hdel", "hexists", "hincrby", "persist", "pexpire"), (_traces,)
            ),
            Grant(("zadd", "zrem", "zscore", "zcard", "zrangebyscore"), (_open_traces,)),
            Grant(("get", "set", "incrby", "decrby"), (_open_bytes,)),
            Grant(("hincrby", "expire"), (_unassembled,)),
            Grant(("get", "set"), (_answers,)),
            Grant(
                _RUN_SCRIPTS,
                (_spans, _capture, _failures, _dead, _traces, _open_traces, _open_bytes, _unassembled, _answers),
            ),
        ),
    ),
    Identity(
        "scrubber",
        "Reads raw events of producers, publishes scrubbed events and failures.",
        (
            Grant(_SERVICE),
            Grant((*_READ_AND_EMPTY, "xsetid", "del"), (_capture,)),
            Grant(("xadd", "xlen", "xinfo|groups", "memory|usage"), (_events, _failures)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("get", "set"), (_low, _overflow, _numbered)),
            Grant(("get",), (_watermark,)),
            Grant(_RUN_SCRIPTS, (_capture, _events, _failures, _dead, _low, _overflow, _numbered)),
        ),
    ),
    Identity(
        "writer",
        "Reads scrubbed events, failures, scores and alerts, and writes them to the store.",
        (
            Grant((*_SERVICE, "wait")),
            Grant(_READ_AND_EMPTY, (_events, _failures, _scores, _alerts)),
            Grant(("xadd",), (_failures, _alerts)),
            Grant(("lindex", "lpop"), (_alert_inbox,)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("get", "set"), (_low, _watermark)),
            Grant(_RUN_SCRIPTS, (_events, _failures, _dead, _scores, _alerts, _alert_inbox, _low, _watermark)),
        ),
        store_role="writer",
    ),
    Identity(
        "judge",
        "Reads scrubbed events, publishes scores of answers and sessions; sees no raw event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_events,)),
            Grant(("xadd",), (_scores, _alerts, _failures)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(_OF_JUDGE, (_judge,)),
            Grant(("hset",), (_calibration,)),
            Grant(_RUN_SCRIPTS, (_events, _scores, _alerts, _dead, _failures, _judge)),
        ),
    ),
    Identity(
        "drift",
        "Reads scrubbed events, scores and failures, publishes alerts; sees no raw event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_events, _scores, _failures)),
            Grant(("xlen", "xinfo|groups"), (_capture,)),
            Grant(("get",), (_low, _watermark)),
            Grant(("xadd",), (_alerts, _failures)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("hget", "hset", "hmget", "hgetall", "hdel", "hincrby", "hkeys"), (_drift,)),
            Grant(("zadd", "zmscore", "zremrangebyrank", "zcard"), (_drift_seen,)),
            Grant(("hgetall", "hkeys", "hdel"), (_acknowledged,)),
            Grant(("hgetall",), (_calibration,)),
            Grant(
                _RUN_SCRIPTS,
                (
                    *(_events, _scores, _failures, _alerts, _dead),
                    *(_drift, _drift_seen, _acknowledged, _calibration, _watermark),
                ),
            ),
        ),
    ),
    Identity(
        "notifier",
        "Reads alerts and sends notifications; sees no event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_alerts,)),
            Grant(("xadd",), (_failures,)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("zadd", "zmscore", "zremrangebyscore"), (_notices,)),
            Grant(("hget", "hset", "hmget", "hgetall", "hdel"), (_episodes,)),
            Grant(_RUN_SCRIPTS, (_alerts, _dead, _failures, _episodes)),
        ),
    ),
    Identity(
        "otlp_exporter",
        "Reads scrubbed events and scores, and sends spans to an OpenTelemetry backend; sees no raw event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_events, _scores)),
            Grant(("xadd",), (_failures,)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(_RUN_SCRIPTS, (_events, _scores, _dead, _failures)),
        ),
    ),
    Identity(
        "sre",
        "An engineer on call: live tail of scrubbed events, queries, status of drift and judge.",
        (_tail, _status),
        store_role="sre",
    ),
    Identity(
        "console",
        "The web console: live tail of scrubbed events, lags, queries; inserts labels and dataset cases. Sees no raw event.",
        (
            Grant(("time", "info")),
            _tail,
            _watch,
            _status,
            Grant(("get",), (_low, _watermark)),
            Grant(("hmget",), (_api_keys,)),
        ),
        store_role="console",
    ),
    Identity(
        "auditor",
        "Writes the audit log from stored tool calls, failures and records; has no Redis user, and deletes nothing.",
        store_role="auditor",
    ),
    Identity("exporter", "Exports from the store; has no Redis user.", store_role="exporter"),
    Identity(
        "evaluator",
        "Stores and reads evaluation runs and nightly outcomes, inserts judged pairs, submits alerts; sees no captured data.",
        # Not `XADD`, which could trim away other alerts. A list has no such option.
        (Grant(("rpush",), (_alert_inbox,)),),
        store_role="evaluator",
    ),
    Identity(
        "operator",
        "A person who requeues or drops dead letters, acknowledges alerts, and makes keys of HTTP clients; reads no other stream. "
        "Inserts audit records.",
        (
            Grant(("hset", "hget", "hgetall"), (_api_keys,)),
            Grant(("hset", "hexists", "hgetall", "hkeys"), (_acknowledged,)),
            Grant(("hgetall", "hkeys"), (_drift,)),
            Grant(("hset",), (_calibration,)),
            Grant(("xlen", "xrange", "xrevrange", "xdel"), (_dead,)),
            Grant(("xadd",), (_capture, _spans, _failures, _alerts)),
            Grant(("eval",), (_dead, _capture, _spans, _failures, _alerts)),
        ),
        store_role="operator",
    ),
    Identity("owner", "Creates tables, prunes, runs health checks; sees no entry of a stream.", _owner, "owner"),
    Identity(
        "admin",
        "Starts and monitors the embedded Redis; sees no entry of a stream.",
        (*_owner, Grant(("config|get", "script|kill"))),
    ),
)
REDIS_IDENTITIES = tuple(identity for identity in IDENTITIES if identity.grants)
STORE_IDENTITIES = tuple(identity for identity in IDENTITIES if identity.store_role)
#: Identities with a settings file.
SETTINGS_IDENTITIES = tuple(identity for identity in IDENTITIES if identity.name != "admin")
