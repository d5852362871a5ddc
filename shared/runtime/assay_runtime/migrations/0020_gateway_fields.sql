-- What the gateway brings: the user (user_hash), the way (origin) and the completeness (partial) of every event; ids that are not
-- integers and texts of retrievals. Rows from before have none of them.
--
-- feedback had a user_hash from the start, in its payload. The column has that one, or the envelope's.
-- A retrieval has a result if it has a hit under any kind of id, or a text: rollups count it so.

ALTER TABLE ${base}.candidates
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin,
    ADD COLUMN IF NOT EXISTS retrieved_ids Array(String) COMMENT 'Id of every hit in the index of the producer, in result order, if ids are not integers; empty otherwise.' CODEC(ZSTD(1)) AFTER partial,
    ADD COLUMN IF NOT EXISTS passages Array(Tuple(id String, source_id Nullable(String), text String, score Nullable(Float64))) COMMENT 'The texts found, scrubbed, in result order; empty if the producer does not send them. passages.text, passages.id and so on are separate arrays.' CODEC(ZSTD(3)) AFTER retrieved_ids,
    ADD CONSTRAINT IF NOT EXISTS retrieved_ids_items CHECK length(retrieved_ids) <= 10000,
    ADD CONSTRAINT IF NOT EXISTS passages_items CHECK length(passages) <= 10000,
    ADD CONSTRAINT IF NOT EXISTS passage_length CHECK arrayAll(text -> length(text) <= 262144, passages.text);

ALTER TABLE ${base}.answers
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE ${base}.feedback
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE ${base}.tool_calls
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE ${base}.server_events
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE ${base}.session_parts
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

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
    user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.',
    origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.',
    partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.',
    retrieved_ids Array(String) COMMENT 'Id of every hit in the index of the producer, in result order, if ids are not integers; empty otherwise.',
    passages Array(Tuple(id String, source_id Nullable(String), text String, score Nullable(Float64))) COMMENT 'The texts found, scrubbed, in result order; empty if the producer does not send them. passages.text, passages.id and so on are separate arrays.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, retrieved_ids, passages, stored_at
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
    user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.',
    origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.',
    partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, stored_at
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
    origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.',
    partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    origin, partial, stored_at
FROM ${base}.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE OR REPLACE VIEW ${views}.tool_calls
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
    user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.',
    origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.',
    partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'tool_call' AS kind, tool_name, args_summary, status,
    error_kind, duration_ms, result_summary, CAST(NULL, 'Nullable(String)') AS event_subtype,
    CAST(NULL, 'Nullable(String)') AS message, call_id, agent_name, parent_call_id, exit_code, seq, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted,
    pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM ${base}.tool_calls FINAL
COMMENT 'Captured tool calls: what was called with which arguments, and how it ended.';

CREATE OR REPLACE VIEW ${views}.server_events
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
    user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.',
    origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.',
    partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'server_event' AS kind,
    CAST(NULL, 'Nullable(String)') AS tool_name, args_summary, CAST(NULL, 'Nullable(String)') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS duration_ms, result_summary,
    event_subtype, message, call_id, agent_name, parent_call_id, exit_code, seq, created_at, event_id, event_time,
    project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM ${base}.server_events FINAL
COMMENT 'Events of the servers that run tools: starts, stops and mismatches.';

CREATE OR REPLACE VIEW ${views}.session_parts
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
    user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.',
    origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.',
    partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, revision, digest, part, parts, title, created, updated, source, source_version, status,
    parent_session_id, forked_from, model, turns, tools, tool_errors, cost_usd, input_tokens, output_tokens, request,
    response, intermediate_events, metadata, created_at, event_id, event_time, project, service, occurred_at,
    traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM ${base}.session_parts FINAL
COMMENT 'Sessions of agents, in parts. The view sessions shows one row for each session.';

CREATE OR REPLACE VIEW ${base}.rollup_minute_source
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, service, tool, minute,
    events, failures, incidents, failure_reasons, without_result, positive, negative, latency_ms_sum, latency_ms_max,
    mapFromArrays(arrayDistinct(latencies), arrayMap(us -> countEqual(latencies, us), arrayDistinct(latencies))) AS latency_us,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, fingerprint, created_at
FROM
(
    SELECT
        'retrieval' AS kind, project, service, toString(tool_name) AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        countIf(empty(retrieved_chunk_ids) AND empty(retrieved_ids) AND empty(passages.id)) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(latency_ms, 1e15)) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        countIf(notEmpty(retrieved_scores)) AS scored,
        sumIf(greatest(-1e15, least(retrieved_scores[1], 1e15)), notEmpty(retrieved_scores)) AS top_score_sum,
        minIf(toNullable(retrieved_scores[1]), notEmpty(retrieved_scores)) AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.candidates AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'answer' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(latency_ms, 1e15)) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.answers AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'feedback' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, countIf(verdict = 'positive') AS positive, countIf(verdict = 'negative') AS negative,
        toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST([], 'Array(UInt32)') AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.feedback AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'failure' AS kind, project, service, '' AS tool, toStartOfMinute(t.created_at) AS minute,
        toUInt64(0) AS events, countIf(entry_id IS NOT NULL) AS failures, countIf(entry_id IS NULL) AS incidents,
        sumMap(map(CAST(toString(reason), 'LowCardinality(String)'), toUInt64(1))) AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST([], 'Array(UInt32)') AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        toUInt64(0) AS pii_events, CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(failure_id, t.created_at))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.capture_failures AS t FINAL
    GROUP BY project, service, minute
    UNION ALL
    SELECT
        'tool_call' AS kind, project, service, toString(tool_name) AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        countIf(status = 'empty') AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(duration_ms, 1e15)) AS latency_ms_sum, max(duration_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(duration_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sumMap(map(CAST(toString(status), 'LowCardinality(String)'), toUInt64(1))) AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.tool_calls AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'server_event' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST([], 'Array(UInt32)') AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.server_events AS t FINAL
    GROUP BY project, service, tool, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';
