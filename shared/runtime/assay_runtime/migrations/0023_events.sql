-- Every event with the columns that all kinds have. The engine plans each view that a query names and the table behind it: a query of this
-- view takes half the time of one that names the five views of the kinds.

CREATE VIEW IF NOT EXISTS ${views}.events
(
    kind String COMMENT 'retrieval, answer, feedback, tool_call or server_event: the views candidates, answers, feedback, tool_calls and server_events have more columns.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool String COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    model String COMMENT 'Model of an answer, or embedding model of a retrieval; empty without one.',
    text String COMMENT 'The question, comment, arguments of a call, or message of a server, scrubbed; empty without one.',
    status String COMMENT 'found or no_result; cited or uncited; positive or negative; the status of a call; the event_subtype of a server event.',
    error_kind Nullable(String) COMMENT 'Kind of error of a tool call; null for other kinds and without one.',
    latency_ms Nullable(Float64) COMMENT 'Wall-clock time of a retrieval, answer or tool call, in milliseconds; null for other kinds.',
    results Nullable(UInt64) COMMENT 'Hits of a retrieval, or passages of an answer; null for other kinds.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    'retrieval' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    toString(e.tool_name) AS tool, ifNull(toString(e.embedding_model), '') AS model, e.query AS text,
    if(empty(e.retrieved_chunk_ids) AND empty(e.retrieved_ids) AND empty(e.passages.id), 'no_result', 'found') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, toNullable(e.latency_ms) AS latency_ms,
    toNullable(toUInt64(greatest(length(e.retrieved_chunk_ids), length(e.retrieved_ids), length(e.passages.id)))) AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM ${base}.candidates AS e FINAL
UNION ALL
SELECT
    'answer' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    '' AS tool, toString(e.model) AS model, e.query AS text, if(empty(e.citations), 'uncited', 'cited') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, toNullable(e.latency_ms) AS latency_ms,
    toNullable(toUInt64(length(e.contexts))) AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM ${base}.answers AS e FINAL
UNION ALL
SELECT
    'feedback' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    '' AS tool, '' AS model, ifNull(e.text, '') AS text, toString(e.verdict) AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS latency_ms,
    CAST(NULL, 'Nullable(UInt64)') AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM ${base}.feedback AS e FINAL
UNION ALL
SELECT
    'tool_call' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    toString(e.tool_name) AS tool, '' AS model, ifNull(e.args_summary, '') AS text, toString(e.status) AS status,
    CAST(e.error_kind, 'Nullable(String)') AS error_kind, toNullable(e.duration_ms) AS latency_ms,
    CAST(NULL, 'Nullable(UInt64)') AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM ${base}.tool_calls AS e FINAL
UNION ALL
SELECT
    'server_event' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    '' AS tool, '' AS model, e.message AS text, toString(e.event_subtype) AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS latency_ms,
    CAST(NULL, 'Nullable(UInt64)') AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM ${base}.server_events AS e FINAL
COMMENT 'Every captured event of each kind, with the columns that all kinds have.';
