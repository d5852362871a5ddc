-- Agents: tool calls, events of tool servers, and sessions; and the conversation (session_id) on every kind.
--
-- tool_calls and server_events follow the rules of 0001: one row for each event, the earliest arrival wins.
-- The views show the eleven fields of the event file, in its order; those that a kind never has are constants there.
--
-- A session is stored in parts, since it may be larger than an entry of a stream. A log that grew is imported again as a new revision;
-- the view sessions shows the newest revision, and whether all of its parts have arrived.

ALTER TABLE ${base}.candidates
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)) AFTER pii_blocked,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE ${base}.answers
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)) AFTER pii_blocked,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE ${base}.feedback
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)) AFTER pii_blocked,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

CREATE TABLE IF NOT EXISTS ${base}.tool_calls
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.' CODEC(Delta(8), ZSTD(1)),
    timestamp DateTime64(6, 'UTC') COMMENT 'When the call ended, by the clock of the server (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    server_session_id String COMMENT 'One run of the server.' CODEC(ZSTD(1)),
    tool_name LowCardinality(String) COMMENT 'The tool called.' CODEC(ZSTD(1)),
    args_summary Nullable(String) COMMENT 'Arguments of the call, scrubbed and shortened: a JSON object as text, for JSONExtract; null without them.' CODEC(ZSTD(3)),
    status Enum8('success' = 1, 'empty' = 2, 'partial' = 3, 'degraded' = 4, 'error' = 5, 'refused' = 6) COMMENT 'Result of the call. The set is closed.' CODEC(ZSTD(1)),
    error_kind LowCardinality(Nullable(String)) COMMENT 'Kind of error, if status is error or refused.' CODEC(ZSTD(1)),
    duration_ms Float64 COMMENT 'Wall-clock time of the call, in milliseconds.' CODEC(ZSTD(1)),
    result_summary Nullable(String) COMMENT 'Counts and fingerprints of the result, scrubbed and shortened: a JSON object as text; null without them.' CODEC(ZSTD(3)),
    call_id Nullable(String) COMMENT 'Id of the call by its server or agent; null without one.' CODEC(ZSTD(1)),
    agent_name LowCardinality(Nullable(String)) COMMENT 'Agent that made the call; null if unknown.' CODEC(ZSTD(1)),
    parent_call_id Nullable(String) COMMENT 'call_id of the call within which this one was made; null without one.' CODEC(ZSTD(1)),
    exit_code Nullable(Int64) COMMENT 'Exit code, if the tool ran a command.' CODEC(ZSTD(1)),
    seq Nullable(UInt64) COMMENT 'Position within server_session_id, from 0; null if the producer does not count.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.' CODEC(ZSTD(1)),
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.' CODEC(ZSTD(1)),
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)),
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)),
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - id COMMENT '2^53 - 1 - id: of several copies of an event the one with the greatest ver, so the earliest arrival, is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX id_range id TYPE minmax GRANULARITY 1,
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    INDEX stored_at_range stored_at TYPE minmax GRANULARITY 1,
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT id_below_2_53 CHECK id <= 9007199254740991,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT duration_is_not_negative CHECK duration_ms >= 0,
    CONSTRAINT error_kind_belongs_to_errors CHECK error_kind IS NULL OR status IN ('error', 'refused'),
    CONSTRAINT tool_name_length CHECK lengthUTF8(tool_name) BETWEEN 1 AND 1024
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Captured tool calls: what was called with which arguments, and how it ended.';

CREATE TABLE IF NOT EXISTS ${base}.server_events
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.' CODEC(Delta(8), ZSTD(1)),
    timestamp DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the server (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    server_session_id String COMMENT 'One run of the server.' CODEC(ZSTD(1)),
    args_summary Nullable(String) COMMENT 'Arguments of the server, scrubbed: a JSON object as text; null without them.' CODEC(ZSTD(3)),
    result_summary Nullable(String) COMMENT 'More about the event, scrubbed: a JSON object as text; null without it.' CODEC(ZSTD(3)),
    event_subtype Enum8('server_start' = 1, 'server_stop' = 2, 'schema_version_mismatch' = 3, 'events_path_init' = 4) COMMENT 'What happened. The set is closed.' CODEC(ZSTD(1)),
    message String COMMENT 'Description of the event, scrubbed. At most 256 KiB.' CODEC(ZSTD(3)),
    call_id Nullable(String) COMMENT 'Id of the call by its server or agent; null without one.' CODEC(ZSTD(1)),
    agent_name LowCardinality(Nullable(String)) COMMENT 'Agent that made the call; null if unknown.' CODEC(ZSTD(1)),
    parent_call_id Nullable(String) COMMENT 'call_id of the call within which this one was made; null without one.' CODEC(ZSTD(1)),
    exit_code Nullable(Int64) COMMENT 'Exit code, if the tool ran a command.' CODEC(ZSTD(1)),
    seq Nullable(UInt64) COMMENT 'Position within server_session_id, from 0; null if the producer does not count.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.' CODEC(ZSTD(1)),
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.' CODEC(ZSTD(1)),
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)),
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)),
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - id COMMENT '2^53 - 1 - id: of several copies of an event the one with the greatest ver, so the earliest arrival, is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX id_range id TYPE minmax GRANULARITY 1,
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    INDEX stored_at_range stored_at TYPE minmax GRANULARITY 1,
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT id_below_2_53 CHECK id <= 9007199254740991,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT message_length CHECK length(message) <= 262144
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Events of the servers that run tools: starts, stops and mismatches.';

CREATE TABLE IF NOT EXISTS ${base}.session_parts
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.' CODEC(Delta(8), ZSTD(1)),
    revision UInt64 COMMENT 'Version of the session: when its log was last changed (Unix milliseconds). The newest is shown.' CODEC(Delta(8), ZSTD(1)),
    digest String COMMENT 'Hash of the sizes of everything in this revision, never of its text: with revision it tells whether an import brings something new.' CODEC(ZSTD(1)),
    part UInt32 COMMENT 'Number of this part, from 1.' CODEC(ZSTD(1)),
    parts UInt32 COMMENT 'Number of parts of this revision.' CODEC(ZSTD(1)),
    title Nullable(String) COMMENT 'Title of the session, scrubbed. At most 256 KiB.' CODEC(ZSTD(3)),
    created DateTime64(6, 'UTC') COMMENT 'When the session began, by the log of the agent (UTC).' CODEC(Delta(8), ZSTD(1)),
    updated DateTime64(6, 'UTC') COMMENT 'When its log was last changed (UTC).' CODEC(Delta(8), ZSTD(1)),
    source LowCardinality(String) COMMENT 'Agent whose log was read: opencode, claude-code, codex, gemini, otel, jsonl.' CODEC(ZSTD(1)),
    source_version LowCardinality(Nullable(String)) COMMENT 'Version of the agent; null if unknown.' CODEC(ZSTD(1)),
    status Enum8('answered' = 1, 'unanswered' = 2, 'aborted' = 3) COMMENT 'How the session ended. The set is closed.' CODEC(ZSTD(1)),
    parent_session_id Nullable(String) COMMENT 'Session whose agent started this one as a sub-agent; null for the sessions of people.' CODEC(ZSTD(1)),
    forked_from Nullable(String) COMMENT 'Session that this one began as a copy of; null without one.' CODEC(ZSTD(1)),
    model LowCardinality(Nullable(String)) COMMENT 'Model that answered last; null if unknown.' CODEC(ZSTD(1)),
    turns UInt64 COMMENT 'Turns of the session, of both roles.' CODEC(T64, ZSTD(1)),
    tools UInt64 COMMENT 'Tool calls of the agent.' CODEC(T64, ZSTD(1)),
    tool_errors UInt64 COMMENT 'Tool calls of the agent that failed or were refused.' CODEC(T64, ZSTD(1)),
    cost_usd Nullable(Float64) COMMENT 'Cost of the session in US dollars, as its log states it; null if it does not.' CODEC(ZSTD(1)),
    input_tokens UInt64 COMMENT 'Tokens of the prompts, as the log counts them; 0 if it does not.' CODEC(T64, ZSTD(1)),
    output_tokens UInt64 COMMENT 'Tokens of the answers; 0 if the log does not count them.' CODEC(T64, ZSTD(1)),
    request String COMMENT 'contents of this part, scrubbed: a JSON object as text.' CODEC(ZSTD(3)),
    response String COMMENT 'candidates of this part, scrubbed: a JSON object as text.' CODEC(ZSTD(3)),
    intermediate_events String COMMENT 'Tool calls of this part with their results, scrubbed: a JSON array as text.' CODEC(ZSTD(3)),
    metadata String COMMENT 'Anything else about the session, scrubbed, in the first part: a JSON object as text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.' CODEC(ZSTD(1)),
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.' CODEC(ZSTD(1)),
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)),
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)),
    session_id String COMMENT 'Id of the session, by its agent.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - id COMMENT '2^53 - 1 - id: of several copies of an event the one with the greatest ver, so the earliest arrival, is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX id_range id TYPE minmax GRANULARITY 1,
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    INDEX stored_at_range stored_at TYPE minmax GRANULARITY 1,
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT id_below_2_53 CHECK id <= 9007199254740991,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT part_is_one_of_parts CHECK part BETWEEN 1 AND parts,
    CONSTRAINT session_id_length CHECK lengthUTF8(session_id) BETWEEN 1 AND 1024
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Sessions of agents, in parts. The view sessions shows one row for each session.';

CREATE OR REPLACE VIEW ${views}.candidates
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.',
    tool_name Enum8('query' = 1, 'search' = 2) COMMENT 'The operation that retrieved.',
    query String COMMENT 'What was asked, scrubbed. At most 51,200 characters.',
    retrieved_slugs Array(LowCardinality(String)) COMMENT 'Distinct document slugs in result order.',
    retrieved_chunk_ids Array(Int64) COMMENT 'Every chunk id in result order, duplicates kept: one per hit.',
    source_ids Array(LowCardinality(String)) COMMENT 'Distinct sources across the result.',
    expand_enabled Nullable(Bool) COMMENT 'Whether the caller asked for query expansion; null for search.',
    detail Nullable(Enum8('low' = 1, 'medium' = 2, 'high' = 3)) COMMENT 'Detail level the caller asked for; null when omitted.',
    detail_resolved Nullable(Enum8('low' = 1, 'medium' = 2, 'high' = 3)) COMMENT 'Detail level the search used; null when unknown.',
    vector_enabled Bool COMMENT 'True if and only if vector search ran.',
    expansion_applied Bool COMMENT 'True if and only if expansion produced variants.',
    latency_ms Float64 COMMENT 'Wall-clock time of the retrieval, in milliseconds.',
    remote Bool COMMENT 'True for untrusted remote callers, false for local ones.',
    job_id Nullable(Int64) COMMENT 'Job of the caller, when it was a subagent.',
    subagent_id Nullable(Int64) COMMENT 'Subagent of the caller.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    retrieved_scores Array(Float64) COMMENT 'One score per hit, in result order; empty if the search has none.',
    embedding_model LowCardinality(Nullable(String)) COMMENT 'The embedding model, when vector search ran.',
    params String COMMENT 'Other parameters of the search: a JSON object as text, for JSONExtract.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.',
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM ${base}.candidates FINAL
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE OR REPLACE VIEW ${views}.answers
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.',
    query String COMMENT 'What was asked, scrubbed. At most 51,200 characters.',
    answer String COMMENT 'What was answered, scrubbed. At most 256 KiB.',
    contexts Array(Tuple(id String, source_id Nullable(String), text String, score Nullable(Float64))) COMMENT 'The passages given to the model, in order. contexts.text, contexts.id and so on are arrays of their own.',
    citations Array(Tuple(context_id String, claim Nullable(String))) COMMENT 'Which passage supports which claim.',
    model LowCardinality(String) COMMENT 'The model that answered.',
    latency_ms Float64 COMMENT 'Wall-clock time of the answer, in milliseconds.',
    retrieval_event_id Nullable(UUID) COMMENT 'The event_id of the retrieval (table candidates) it was built on.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.',
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM ${base}.answers FINAL
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE OR REPLACE VIEW ${views}.feedback
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.',
    target_event_id UUID COMMENT 'The event_id judged.',
    verdict Enum8('positive' = 1, 'negative' = 2) COMMENT 'What the person thought.',
    text Nullable(String) COMMENT 'What the person said, scrubbed. At most 256 KiB.',
    user_hash Nullable(String) COMMENT 'A pseudonym of the person, made by the producer.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.',
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM ${base}.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE VIEW IF NOT EXISTS ${views}.tool_calls
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.',
    timestamp DateTime64(6, 'UTC') COMMENT 'When the call ended, by the clock of the server (UTC, microseconds).',
    server_session_id String COMMENT 'One run of the server.',
    kind String COMMENT 'Always tool_call.',
    tool_name LowCardinality(String) COMMENT 'The tool called.',
    args_summary Nullable(String) COMMENT 'Arguments of the call, scrubbed and shortened: a JSON object as text, for JSONExtract; null without them.',
    status Enum8('success' = 1, 'empty' = 2, 'partial' = 3, 'degraded' = 4, 'error' = 5, 'refused' = 6) COMMENT 'Result of the call. The set is closed.',
    error_kind LowCardinality(Nullable(String)) COMMENT 'Kind of error, if status is error or refused.',
    duration_ms Float64 COMMENT 'Wall-clock time of the call, in milliseconds.',
    result_summary Nullable(String) COMMENT 'Counts and fingerprints of the result, scrubbed and shortened: a JSON object as text; null without them.',
    event_subtype Nullable(String) COMMENT 'Always null: server events have one.',
    message Nullable(String) COMMENT 'Always null: server events have one.',
    call_id Nullable(String) COMMENT 'Id of the call by its server or agent; null without one.',
    agent_name LowCardinality(Nullable(String)) COMMENT 'Agent that made the call; null if unknown.',
    parent_call_id Nullable(String) COMMENT 'call_id of the call within which this one was made; null without one.',
    exit_code Nullable(Int64) COMMENT 'Exit code, if the tool ran a command.',
    seq Nullable(UInt64) COMMENT 'Position within server_session_id, from 0; null if the producer does not count.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.',
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'tool_call' AS kind, tool_name, args_summary, status,
    error_kind, duration_ms, result_summary, CAST(NULL, 'Nullable(String)') AS event_subtype,
    CAST(NULL, 'Nullable(String)') AS message, call_id, agent_name, parent_call_id, exit_code, seq, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted,
    pii_blocked, session_id, stored_at
FROM ${base}.tool_calls FINAL
COMMENT 'Captured tool calls: what was called with which arguments, and how it ended.';

CREATE VIEW IF NOT EXISTS ${views}.server_events
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.',
    timestamp DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the server (UTC, microseconds).',
    server_session_id String COMMENT 'One run of the server.',
    kind String COMMENT 'Always server_event.',
    tool_name Nullable(String) COMMENT 'Always null: tool calls have one.',
    args_summary Nullable(String) COMMENT 'Arguments of the server, scrubbed: a JSON object as text; null without them.',
    status Nullable(String) COMMENT 'Always null: tool calls have one.',
    error_kind Nullable(String) COMMENT 'Always null: tool calls have one.',
    duration_ms Nullable(Float64) COMMENT 'Always null: tool calls have one.',
    result_summary Nullable(String) COMMENT 'More about the event, scrubbed: a JSON object as text; null without it.',
    event_subtype Enum8('server_start' = 1, 'server_stop' = 2, 'schema_version_mismatch' = 3, 'events_path_init' = 4) COMMENT 'What happened. The set is closed.',
    message String COMMENT 'Description of the event, scrubbed. At most 256 KiB.',
    call_id Nullable(String) COMMENT 'Id of the call by its server or agent; null without one.',
    agent_name LowCardinality(Nullable(String)) COMMENT 'Agent that made the call; null if unknown.',
    parent_call_id Nullable(String) COMMENT 'call_id of the call within which this one was made; null without one.',
    exit_code Nullable(Int64) COMMENT 'Exit code, if the tool ran a command.',
    seq Nullable(UInt64) COMMENT 'Position within server_session_id, from 0; null if the producer does not count.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.',
    session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'server_event' AS kind,
    CAST(NULL, 'Nullable(String)') AS tool_name, args_summary, CAST(NULL, 'Nullable(String)') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS duration_ms, result_summary,
    event_subtype, message, call_id, agent_name, parent_call_id, exit_code, seq, created_at, event_id, event_time,
    project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM ${base}.server_events FINAL
COMMENT 'Events of the servers that run tools: starts, stops and mismatches.';

CREATE VIEW IF NOT EXISTS ${views}.session_parts
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.',
    revision UInt64 COMMENT 'Version of the session: when its log was last changed (Unix milliseconds). The newest is shown.',
    digest String COMMENT 'Hash of the sizes of everything in this revision, never of its text: with revision it tells whether an import brings something new.',
    part UInt32 COMMENT 'Number of this part, from 1.',
    parts UInt32 COMMENT 'Number of parts of this revision.',
    title Nullable(String) COMMENT 'Title of the session, scrubbed. At most 256 KiB.',
    created DateTime64(6, 'UTC') COMMENT 'When the session began, by the log of the agent (UTC).',
    updated DateTime64(6, 'UTC') COMMENT 'When its log was last changed (UTC).',
    source LowCardinality(String) COMMENT 'Agent whose log was read: opencode, claude-code, codex, gemini, otel, jsonl.',
    source_version LowCardinality(Nullable(String)) COMMENT 'Version of the agent; null if unknown.',
    status Enum8('answered' = 1, 'unanswered' = 2, 'aborted' = 3) COMMENT 'How the session ended. The set is closed.',
    parent_session_id Nullable(String) COMMENT 'Session whose agent started this one as a sub-agent; null for the sessions of people.',
    forked_from Nullable(String) COMMENT 'Session that this one began as a copy of; null without one.',
    model LowCardinality(Nullable(String)) COMMENT 'Model that answered last; null if unknown.',
    turns UInt64 COMMENT 'Turns of the session, of both roles.',
    tools UInt64 COMMENT 'Tool calls of the agent.',
    tool_errors UInt64 COMMENT 'Tool calls of the agent that failed or were refused.',
    cost_usd Nullable(Float64) COMMENT 'Cost of the session in US dollars, as its log states it; null if it does not.',
    input_tokens UInt64 COMMENT 'Tokens of the prompts, as the log counts them; 0 if it does not.',
    output_tokens UInt64 COMMENT 'Tokens of the answers; 0 if the log does not count them.',
    request String COMMENT 'contents of this part, scrubbed: a JSON object as text.',
    response String COMMENT 'candidates of this part, scrubbed: a JSON object as text.',
    intermediate_events String COMMENT 'Tool calls of this part with their results, scrubbed: a JSON array as text.',
    metadata String COMMENT 'Anything else about the session, scrubbed, in the first part: a JSON object as text.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.',
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.',
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.',
    session_id String COMMENT 'Id of the session, by its agent.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, revision, digest, part, parts, title, created, updated, source, source_version, status,
    parent_session_id, forked_from, model, turns, tools, tool_errors, cost_usd, input_tokens, output_tokens, request,
    response, intermediate_events, metadata, created_at, event_id, event_time, project, service, occurred_at,
    traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id, stored_at
FROM ${base}.session_parts FINAL
COMMENT 'Sessions of agents, in parts. The view sessions shows one row for each session.';

CREATE VIEW IF NOT EXISTS ${views}.sessions
(
    project LowCardinality(String) COMMENT 'The tenant.',
    session_id String COMMENT 'Id of the session: by its agent if it was imported, else the session_id of captured events.',
    source LowCardinality(String) COMMENT 'Agent whose log was imported; capture if the session is known from captured events alone.',
    source_version Nullable(String) COMMENT 'Version of the agent; null if unknown.',
    status LowCardinality(String) COMMENT 'answered, unanswered or aborted, as imported; open for a session that is only captured.',
    complete Bool COMMENT 'True if all parts of the newest revision are stored; true for a session that is only captured.',
    revision UInt64 COMMENT 'Newest revision (Unix milliseconds); 0 for a session that is only captured.',
    digest String COMMENT 'Hash of the sizes of everything in the newest revision; empty for a session that is only captured.',
    parts UInt64 COMMENT 'Parts of the newest revision.',
    parts_stored UInt64 COMMENT 'Parts of the newest revision that are stored.',
    title Nullable(String) COMMENT 'Title of the session, scrubbed; null without one.',
    first_at DateTime64(6, 'UTC') COMMENT 'When the session began (UTC).',
    last_at DateTime64(6, 'UTC') COMMENT 'When it was last changed (UTC).',
    parent_session_id Nullable(String) COMMENT 'Session whose agent started this one as a sub-agent; null for the sessions of people.',
    forked_from Nullable(String) COMMENT 'Session that this one began as a copy of; null without one.',
    model Nullable(String) COMMENT 'Model that answered last; null if unknown.',
    turns UInt64 COMMENT 'Turns of both roles; answers for a session that is only captured.',
    tools UInt64 COMMENT 'Tool calls of the agent.',
    tool_errors UInt64 COMMENT 'Tool calls that failed or were refused.',
    cost_usd Nullable(Float64) COMMENT 'Cost of the session in US dollars, as its log states it.',
    input_tokens UInt64 COMMENT 'Tokens of the prompts, as the log counts them.',
    output_tokens UInt64 COMMENT 'Tokens of the answers, as the log counts them.',
    positive UInt64 COMMENT 'Feedback on its events that was positive.',
    negative UInt64 COMMENT 'Feedback on its events that was negative.',
    scored UInt64 COMMENT 'Answers of the session that the judge scored.',
    faithfulness Nullable(Float64) COMMENT 'Mean faithfulness of these answers; null without one.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received its latest event (Redis clock, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH captured AS
(
    SELECT
        project, session_id,
        min(at) AS first_at, max(at) AS last_at, sum(answer) AS turns, sum(call) AS tools, sum(failed) AS tool_errors,
        sum(liked) AS positive, sum(disliked) AS negative, max(received) AS created_at
    FROM
    (
        SELECT
            project, assumeNotNull(t.session_id) AS session_id, occurred_at AS at, created_at AS received,
            0 AS answer, 0 AS call, 0 AS failed, 0 AS liked, 0 AS disliked
        FROM ${base}.candidates AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 1, 0, 0, 0, 0
        FROM ${base}.answers AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 1, status IN ('error', 'refused'), 0, 0
        FROM ${base}.tool_calls AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 0, 0, verdict = 'positive', verdict = 'negative'
        FROM ${base}.feedback AS t FINAL
        WHERE t.session_id IS NOT NULL
    )
    GROUP BY project, session_id
),
imported AS
(
    SELECT
        project, session_id, revision, digest, any(source) AS source, any(source_version) AS source_version,
        toString(any(status)) AS status, max(parts) AS parts, uniqExact(part) AS parts_stored, any(title) AS title,
        min(created) AS first_at, max(updated) AS last_at, any(parent_session_id) AS parent_session_id,
        any(forked_from) AS forked_from, any(model) AS model, any(turns) AS turns, any(tools) AS tools,
        any(tool_errors) AS tool_errors, any(cost_usd) AS cost_usd, any(input_tokens) AS input_tokens,
        any(output_tokens) AS output_tokens, max(created_at) AS created_at
    FROM ${base}.session_parts FINAL
    GROUP BY project, session_id, revision, digest
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY project, session_id
),
judged AS
(
    SELECT project, assumeNotNull(a.session_id) AS session_id, count() AS scored, avg(s.faithfulness) AS faithfulness
    FROM ${base}.answers AS a FINAL
    INNER JOIN
    (
        SELECT event_id, argMax(metrics['faithfulness'], judged_at) AS faithfulness
        FROM ${base}.scores FINAL
        WHERE status = 'scored' AND mapContains(metrics, 'faithfulness')
        GROUP BY event_id
    ) AS s USING (event_id)
    WHERE a.session_id IS NOT NULL
    GROUP BY project, session_id
)
SELECT
    if(i.session_id != '', i.project, c.project) AS project, if(i.session_id != '', i.session_id, c.session_id) AS session_id,
    if(i.session_id != '', toString(i.source), 'capture') AS source, i.source_version AS source_version,
    if(i.session_id != '', i.status, 'open') AS status, CAST(i.parts = i.parts_stored, 'Bool') AS complete, i.revision AS revision, i.digest AS digest,
    i.parts AS parts, i.parts_stored AS parts_stored, i.title AS title,
    if(i.session_id != '', i.first_at, c.first_at) AS first_at, greatest(i.last_at, c.last_at) AS last_at,
    i.parent_session_id AS parent_session_id, i.forked_from AS forked_from, i.model AS model,
    if(i.session_id != '', i.turns, c.turns) AS turns, if(i.session_id != '', i.tools, c.tools) AS tools,
    if(i.session_id != '', i.tool_errors, c.tool_errors) AS tool_errors, i.cost_usd AS cost_usd, i.input_tokens AS input_tokens,
    i.output_tokens AS output_tokens, c.positive AS positive, c.negative AS negative, j.scored AS scored,
    if(j.scored = 0, NULL, j.faithfulness) AS faithfulness, greatest(i.created_at, c.created_at) AS created_at
FROM imported AS i
FULL JOIN captured AS c ON i.project = c.project AND i.session_id = c.session_id
LEFT JOIN judged AS j ON j.project = if(i.session_id != '', i.project, c.project) AND j.session_id = if(i.session_id != '', i.session_id, c.session_id)
COMMENT 'Sessions: one row for each, imported or known from captured events. A session with complete = false is still arriving.';
