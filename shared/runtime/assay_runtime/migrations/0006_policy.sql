-- What each event's policy met and what it kept out: the categories of personal data that were found, and those that did not pass.
-- Rows from before have empty lists; their pii_families still tell.

ALTER TABLE ${base}.candidates
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)) AFTER pii_attempted;

ALTER TABLE ${base}.answers
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)) AFTER pii_attempted;

ALTER TABLE ${base}.feedback
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)) AFTER pii_attempted;

ALTER TABLE ${base}.capture_failures
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data. Empty unless the policy refused it.' CODEC(ZSTD(1)) AFTER created_at,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories because of which the policy refused the event.' CODEC(ZSTD(1)) AFTER pii_attempted;

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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, pii_attempted, pii_blocked,
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked,
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked,
    stored_at
FROM ${base}.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE OR REPLACE VIEW ${views}.capture_failures
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    failure_id UUID COMMENT 'Idempotency key: the same for every redelivery of the same failure.',
    event_id Nullable(UUID) COMMENT 'The event, when its entry was readable enough to say.',
    entry_id Nullable(String) COMMENT 'The stream entry that failed, lost for the tables; null for an incident of a sink: nothing was lost, the events wait.',
    project LowCardinality(String) COMMENT 'The tenant; unknown when the entry was too broken to say.',
    service LowCardinality(String) COMMENT 'The producer; unknown when the entry was too broken to say.',
    stage LowCardinality(String) COMMENT 'The service that gave up: scrubber, writer, ...',
    reason Enum8('db_down' = 1, 'rls_reject' = 2, 'check_violation' = 3, 'scrubber_exception' = 4, 'other' = 5) COMMENT 'Why. The set is closed.',
    error_class LowCardinality(String) COMMENT 'Class of the exception, or the rule broken.',
    detail String COMMENT 'Which field and which rule.',
    deliveries UInt64 COMMENT 'How often the entry had been delivered.',
    created_at DateTime64(3, 'UTC') COMMENT 'When it failed (UTC, milliseconds). Retention counts from here.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data. Empty unless the policy refused it.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories because of which the policy refused the event.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, failure_id, event_id, entry_id, project, service, stage, reason, error_class, detail,
    deliveries, created_at, pii_attempted, pii_blocked,
    stored_at
FROM ${base}.capture_failures FINAL
COMMENT 'What could not be stored, and why. Never the content.';
