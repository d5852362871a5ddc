-- The schema of Assay for a ClickHouse cluster. Made from the migrations: python -m docs.generate.cluster_ddl --write
-- How to run it, and what has not been tried: docs/cluster.md. Every statement may be repeated.
--
-- assay_base_local and assay_local: what each shard holds. assay_base and assay: the same names over all shards, for programs and people.

CREATE DATABASE IF NOT EXISTS `assay_base_local` ON CLUSTER '{cluster}';

CREATE DATABASE IF NOT EXISTS `assay_local` ON CLUSTER '{cluster}';

CREATE TABLE IF NOT EXISTS `assay_base_local`.candidates ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.' CODEC(Delta(8), ZSTD(1)),
    tool_name Enum8('query' = 1, 'search' = 2) COMMENT 'The operation that retrieved.' CODEC(ZSTD(1)),
    query String COMMENT 'What was asked, scrubbed. At most 51,200 characters.' CODEC(ZSTD(3)),
    retrieved_slugs Array(LowCardinality(String)) COMMENT 'Distinct document slugs in result order.' CODEC(ZSTD(1)),
    retrieved_chunk_ids Array(Int64) COMMENT 'Every chunk id in result order, duplicates kept: one per hit.' CODEC(T64, ZSTD(1)),
    source_ids Array(LowCardinality(String)) COMMENT 'Distinct sources across the result.' CODEC(ZSTD(1)),
    expand_enabled Nullable(Bool) COMMENT 'Whether the caller asked for query expansion; null for search.' CODEC(ZSTD(1)),
    detail Nullable(Enum8('low' = 1, 'medium' = 2, 'high' = 3)) COMMENT 'Detail level the caller asked for; null when omitted.' CODEC(ZSTD(1)),
    detail_resolved Nullable(Enum8('low' = 1, 'medium' = 2, 'high' = 3)) COMMENT 'Detail level the search used; null when unknown.' CODEC(ZSTD(1)),
    vector_enabled Bool COMMENT 'True if and only if vector search ran.' CODEC(ZSTD(1)),
    expansion_applied Bool COMMENT 'True if and only if expansion produced variants.' CODEC(ZSTD(1)),
    latency_ms Float64 COMMENT 'Wall-clock time of the retrieval, in milliseconds.' CODEC(ZSTD(1)),
    remote Bool COMMENT 'True for untrusted remote callers, false for local ones.' CODEC(ZSTD(1)),
    job_id Nullable(Int64) COMMENT 'Job of the caller, when it was a subagent.' CODEC(ZSTD(1)),
    subagent_id Nullable(Int64) COMMENT 'Subagent of the caller.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.' CODEC(ZSTD(1)),
    retrieved_scores Array(Float64) COMMENT 'One score per hit, in result order; empty if the search has none.' CODEC(ZSTD(1)),
    embedding_model LowCardinality(Nullable(String)) COMMENT 'The embedding model, when vector search ran.' CODEC(ZSTD(1)),
    params String DEFAULT '{}' COMMENT 'Other parameters of the search: a JSON object as text, for JSONExtract.' CODEC(ZSTD(3)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.' CODEC(ZSTD(1)),
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - id COMMENT '2^53 - 1 - id: of several copies of an event the one with the greatest ver, so the earliest arrival, is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX id_range id TYPE minmax GRANULARITY 1,
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT id_below_2_53 CHECK id <= 9007199254740991,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT query_length CHECK lengthUTF8(query) <= 51200,
    CONSTRAINT latency_is_not_negative CHECK latency_ms >= 0,
    CONSTRAINT retrieved_slugs_items CHECK length(retrieved_slugs) <= 10000,
    CONSTRAINT retrieved_chunk_ids_items CHECK length(retrieved_chunk_ids) <= 10000,
    CONSTRAINT source_ids_items CHECK length(source_ids) <= 10000,
    CONSTRAINT retrieved_scores_items CHECK length(retrieved_scores) <= 10000
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.answers ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.' CODEC(Delta(8), ZSTD(1)),
    query String COMMENT 'What was asked, scrubbed. At most 51,200 characters.' CODEC(ZSTD(3)),
    answer String COMMENT 'What was answered, scrubbed. At most 256 KiB.' CODEC(ZSTD(3)),
    contexts Array(Tuple(id String, source_id Nullable(String), text String, score Nullable(Float64))) COMMENT 'The passages given to the model, in order. contexts.text, contexts.id and so on are arrays of their own.' CODEC(ZSTD(3)),
    citations Array(Tuple(context_id String, claim Nullable(String))) COMMENT 'Which passage supports which claim.' CODEC(ZSTD(3)),
    model LowCardinality(String) COMMENT 'The model that answered.' CODEC(ZSTD(1)),
    latency_ms Float64 COMMENT 'Wall-clock time of the answer, in milliseconds.' CODEC(ZSTD(1)),
    retrieval_event_id Nullable(UUID) COMMENT 'The event_id of the retrieval (table candidates) it was built on.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.' CODEC(ZSTD(1)),
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - id COMMENT '2^53 - 1 - id: of several copies of an event the one with the greatest ver, so the earliest arrival, is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX id_range id TYPE minmax GRANULARITY 1,
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX retrieval_event_id_bloom retrieval_event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT id_below_2_53 CHECK id <= 9007199254740991,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT query_length CHECK lengthUTF8(query) <= 51200,
    CONSTRAINT latency_is_not_negative CHECK latency_ms >= 0,
    CONSTRAINT answer_length CHECK length(answer) <= 262144,
    CONSTRAINT context_length CHECK arrayAll(text -> length(text) <= 262144, contexts.text),
    CONSTRAINT claim_length CHECK arrayAll(claim -> length(ifNull(claim, '')) <= 262144, citations.claim),
    CONSTRAINT contexts_items CHECK length(contexts) <= 10000,
    CONSTRAINT citations_items CHECK length(citations) <= 10000
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.feedback ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Place in the log: unique within the kind, below 2^53, rising with created_at. The cursor of exports.' CODEC(Delta(8), ZSTD(1)),
    target_event_id UUID COMMENT 'The event_id judged.' CODEC(ZSTD(1)),
    verdict Enum8('positive' = 1, 'negative' = 2) COMMENT 'What the person thought.' CODEC(ZSTD(1)),
    text Nullable(String) COMMENT 'What the person said, scrubbed. At most 256 KiB.' CODEC(ZSTD(3)),
    user_hash Nullable(String) COMMENT 'A pseudonym of the person, made by the producer.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event (Redis clock, UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    event_id UUID COMMENT 'UUIDv7 made by the producer: the idempotency key from SDK to table.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (clock of the producer, UTC, milliseconds). Tables are partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    traceparent Nullable(String) COMMENT 'W3C trace context of the caller; null without one.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed.' CODEC(ZSTD(1)),
    policy LowCardinality(String) COMMENT 'Fingerprint of the scrubbing policy that was applied.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - id COMMENT '2^53 - 1 - id: of several copies of an event the one with the greatest ver, so the earliest arrival, is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX id_range id TYPE minmax GRANULARITY 1,
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX target_event_id_bloom target_event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT id_below_2_53 CHECK id <= 9007199254740991,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT text_length CHECK length(ifNull(text, '')) <= 262144
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Verdicts of people on earlier events.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.capture_failures ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    failure_id UUID COMMENT 'Idempotency key: the same for every redelivery of the same failure.' CODEC(ZSTD(1)),
    event_id Nullable(UUID) COMMENT 'The event, when its entry was readable enough to say.' CODEC(ZSTD(1)),
    entry_id Nullable(String) COMMENT 'The stream entry that failed, lost for the tables; null for an incident of a sink: nothing was lost, the events wait.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant; unknown when the entry was too broken to say.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'The producer; unknown when the entry was too broken to say.' CODEC(ZSTD(1)),
    stage LowCardinality(String) COMMENT 'The service that gave up: scrubber, writer, ...' CODEC(ZSTD(1)),
    reason Enum8('db_down' = 1, 'rls_reject' = 2, 'check_violation' = 3, 'scrubber_exception' = 4, 'other' = 5) COMMENT 'Why. The set is closed.' CODEC(ZSTD(1)),
    error_class LowCardinality(String) COMMENT 'Class of the exception, or the rule broken.' CODEC(ZSTD(1)),
    detail String COMMENT 'Which field and which rule.' CODEC(ZSTD(3)),
    deliveries UInt64 COMMENT 'How often the entry had been delivered.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When it failed (UTC, milliseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - toUnixTimestamp64Milli(created_at) COMMENT 'Greater for an earlier created_at: of several copies of a failure the earliest is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX created_at_range created_at TYPE minmax GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT stage_length CHECK length(stage) <= 64,
    CONSTRAINT error_class_length CHECK lengthUTF8(error_class) <= 255,
    CONSTRAINT detail_length CHECK lengthUTF8(detail) <= 2000
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY failure_id
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'What could not be stored, and why. Never the content.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.watermarks ON CLUSTER '{cluster}'
(
    shard UInt8 COMMENT 'Shard of the streams, from 0.' CODEC(ZSTD(1)),
    watermark UInt64 COMMENT 'Every captured entry of the shard with an id up to this is stored or recorded as a failure. Never goes back.' CODEC(ZSTD(1)),
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the writer last moved it (UTC, milliseconds).' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', watermark)
ORDER BY shard
COMMENT 'How far each shard of the log is stored.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.schema_migrations ON CLUSTER '{cluster}'
(
    version UInt32 COMMENT 'Number of the migration.' CODEC(ZSTD(1)),
    name String COMMENT 'Its file.' CODEC(ZSTD(1)),
    checksum String COMMENT 'SHA-256 of its text.' CODEC(ZSTD(1)),
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When it was applied (UTC, milliseconds).' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (version, checksum)
COMMENT 'Which changes of the schema have been applied.';

CREATE VIEW IF NOT EXISTS `assay_local`.candidates ON CLUSTER '{cluster}'
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, stored_at
FROM `assay_base_local`.candidates FINAL
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE VIEW IF NOT EXISTS `assay_local`.answers ON CLUSTER '{cluster}'
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, stored_at
FROM `assay_base_local`.answers FINAL
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE VIEW IF NOT EXISTS `assay_local`.feedback ON CLUSTER '{cluster}'
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, stored_at
FROM `assay_base_local`.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE VIEW IF NOT EXISTS `assay_local`.capture_failures ON CLUSTER '{cluster}'
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, failure_id, event_id, entry_id, project, service, stage, reason, error_class, detail,
    deliveries, created_at, stored_at
FROM `assay_base_local`.capture_failures FINAL
COMMENT 'What could not be stored, and why. Never the content.';

CREATE VIEW IF NOT EXISTS `assay_local`.watermarks ON CLUSTER '{cluster}'
(
    shard UInt8 COMMENT 'Shard of the streams, from 0.',
    watermark UInt64 COMMENT 'Every captured entry of the shard with an id up to this is stored or recorded as a failure. Never goes back.',
    updated_at DateTime64(3, 'UTC') COMMENT 'When the writer last moved it (UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    shard, watermark, updated_at
FROM `assay_base_local`.watermarks FINAL
COMMENT 'How far each shard of the log is stored.';

CREATE VIEW IF NOT EXISTS `assay_local`.schema_migrations ON CLUSTER '{cluster}'
(
    version UInt32 COMMENT 'Number of the migration.',
    name String COMMENT 'Its file.',
    checksum String COMMENT 'SHA-256 of its text.',
    applied_at DateTime64(3, 'UTC') COMMENT 'When it was applied (UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    version, name, checksum, applied_at
FROM `assay_base_local`.schema_migrations FINAL
COMMENT 'Which changes of the schema have been applied.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}' ADD INDEX IF NOT EXISTS stored_at_range stored_at TYPE minmax GRANULARITY 1;

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}' ADD INDEX IF NOT EXISTS stored_at_range stored_at TYPE minmax GRANULARITY 1;

ALTER TABLE `assay_base_local`.feedback ON CLUSTER '{cluster}' ADD INDEX IF NOT EXISTS stored_at_range stored_at TYPE minmax GRANULARITY 1;

ALTER TABLE `assay_base_local`.capture_failures ON CLUSTER '{cluster}' ADD INDEX IF NOT EXISTS stored_at_range stored_at TYPE minmax GRANULARITY 1;

CREATE TABLE IF NOT EXISTS `assay_base_local`.rollup_minute ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4) COMMENT 'What is counted: events of a kind, or failures.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    tool LowCardinality(String) COMMENT 'The operation that retrieved; empty for other kinds.' CODEC(ZSTD(1)),
    minute DateTime('UTC') COMMENT 'Start of the minute of event_time, for failures of created_at (UTC).' CODEC(Delta(4), ZSTD(1)),
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.' CODEC(T64, ZSTD(1)),
    failures UInt64 COMMENT 'Events that were lost for the tables.' CODEC(ZSTD(1)),
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.' CODEC(ZSTD(1)),
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.' CODEC(ZSTD(1)),
    without_result UInt64 COMMENT 'Retrievals that found nothing.' CODEC(ZSTD(1)),
    positive UInt64 COMMENT 'Feedback that was positive.' CODEC(ZSTD(1)),
    negative UInt64 COMMENT 'Feedback that was negative.' CODEC(ZSTD(1)),
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.' CODEC(ZSTD(1)),
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.' CODEC(ZSTD(1)),
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.' CODEC(ZSTD(1)),
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.' CODEC(ZSTD(1)),
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.' CODEC(ZSTD(1)),
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.' CODEC(ZSTD(1)),
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.' CODEC(ZSTD(1)),
    fingerprint Int64 COMMENT 'Sum of hashes of the copies that were counted: tells whether exactly these are in the tables.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(refreshed_at) COMMENT 'The latest count is shown.' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMM(minute)
ORDER BY (project, minute, kind, service, tool)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Events and failures by minute. A row is complete for its minute: add rows up over services, tools, kinds and minutes.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.rollup_hour ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4) COMMENT 'What is counted: events of a kind, or failures.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    tool LowCardinality(String) COMMENT 'The operation that retrieved; empty for other kinds.' CODEC(ZSTD(1)),
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).' CODEC(Delta(4), ZSTD(1)),
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.' CODEC(T64, ZSTD(1)),
    failures UInt64 COMMENT 'Events that were lost for the tables.' CODEC(ZSTD(1)),
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.' CODEC(ZSTD(1)),
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.' CODEC(ZSTD(1)),
    without_result UInt64 COMMENT 'Retrievals that found nothing.' CODEC(ZSTD(1)),
    positive UInt64 COMMENT 'Feedback that was positive.' CODEC(ZSTD(1)),
    negative UInt64 COMMENT 'Feedback that was negative.' CODEC(ZSTD(1)),
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.' CODEC(ZSTD(1)),
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.' CODEC(ZSTD(1)),
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.' CODEC(ZSTD(1)),
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.' CODEC(ZSTD(1)),
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.' CODEC(ZSTD(1)),
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.' CODEC(ZSTD(1)),
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.' CODEC(ZSTD(1)),
    fingerprint Int64 COMMENT 'Sum of hashes of the copies that were counted: tells whether exactly these are in the tables.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(refreshed_at) COMMENT 'The latest count is shown.' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, kind, service, tool)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Events and failures by hour, added up from minutes.';

CREATE VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_source ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, service, tool, minute,
    events, failures, incidents, failure_reasons, without_result, positive, negative, latency_ms_sum, latency_ms_max,
    mapFromArrays(arrayDistinct(latencies), arrayMap(us -> countEqual(latencies, us), arrayDistinct(latencies))) AS latency_us,
    scored, top_score_sum, top_score_min, pii_events, pii_families, fingerprint, created_at
FROM
(
    SELECT
        'retrieval' AS kind, project, service, toString(tool_name) AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        countIf(empty(retrieved_chunk_ids)) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(latency_ms) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        countIf(notEmpty(retrieved_scores)) AS scored,
        sumIf(retrieved_scores[1], notEmpty(retrieved_scores)) AS top_score_sum,
        minIf(toNullable(retrieved_scores[1]), notEmpty(retrieved_scores)) AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.candidates AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'answer' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(latency_ms) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.answers AS t FINAL
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
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.feedback AS t FINAL
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
        sum(reinterpretAsInt64(cityHash64(failure_id, t.created_at))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.capture_failures AS t FINAL
    GROUP BY project, service, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';

CREATE VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_stale ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT max(refreshed_at) FROM `assay_base_local`.rollup_minute) - toIntervalMinute(2) AS since
SELECT DISTINCT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, minute
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.candidates WHERE stored_at >= since
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.answers WHERE stored_at >= since
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.feedback WHERE stored_at >= since
    UNION ALL
    SELECT 'failure' AS kind, project, toStartOfMinute(created_at) AS minute
    FROM `assay_base_local`.capture_failures
    WHERE failure_id IN (SELECT failure_id FROM `assay_base_local`.capture_failures WHERE stored_at >= since)
)
COMMENT 'Minutes into which something was stored since the last refresh.';

CREATE VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_differing ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, hour
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.candidates FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.answers FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.feedback FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        'failure' AS kind, project, toStartOfHour(created_at) AS hour,
        sum(reinterpretAsInt64(cityHash64(failure_id, created_at))) AS difference
    FROM `assay_base_local`.capture_failures FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT toString(kind) AS kind, project, toStartOfHour(minute) AS hour, -sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_minute FINAL
    GROUP BY kind, project, hour
)
GROUP BY kind, project, hour
HAVING sum(difference) != 0
COMMENT 'Hours of rollup_minute in which something else was counted than the tables hold. Reads all of both.';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE APPEND TO `assay_base_local`.rollup_minute EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT now64(3, 'UTC')) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute_source
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM `assay_base_local`.rollup_minute_source
        WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR APPEND TO `assay_base_local`.rollup_minute EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT now64(3, 'UTC')) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute_source
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM `assay_base_local`.rollup_minute_source
        WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_differing ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT kind, project, hour
FROM
(
    SELECT kind, project, toStartOfHour(minute) AS hour, sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_minute FINAL
    GROUP BY kind, project, hour
    UNION ALL
    SELECT kind, project, hour, -sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_hour FINAL
    GROUP BY kind, project, hour
)
GROUP BY kind, project, hour
HAVING sum(difference) != 0
COMMENT 'Hours of rollup_hour in which something else was counted than in rollup_minute. Reads all of both.';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE OFFSET 20 SECOND APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT now64(3, 'UTC')) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN
    (
        SELECT kind, project, toStartOfHour(minute)
        FROM `assay_base_local`.rollup_minute
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM `assay_base_local`.rollup_hour) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR OFFSET 5 MINUTE APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT now64(3, 'UTC')) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_hour_differing)
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE VIEW IF NOT EXISTS `assay_local`.rollup_minute ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved; empty for other kinds.',
    minute DateTime('UTC') COMMENT 'Start of the minute of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result,
    positive, negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, created_at, refreshed_at
FROM `assay_base_local`.rollup_minute FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by minute. A row is complete for its minute: add rows up over services, tools, kinds and minutes.';

CREATE VIEW IF NOT EXISTS `assay_local`.rollup_hour ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved; empty for other kinds.',
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, hour, events, failures, incidents, failure_reasons, without_result, positive,
    negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, created_at, refreshed_at
FROM `assay_base_local`.rollup_hour FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by hour, added up from minutes.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.scores ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.' CODEC(ZSTD(1)),
    event_id UUID COMMENT 'The answer that was judged.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'The producer of the answer.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.' CODEC(ZSTD(1)),
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.' CODEC(ZSTD(1)),
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.' CODEC(ZSTD(1)),
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.' CODEC(ZSTD(1)),
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.' CODEC(ZSTD(1)),
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.' CODEC(ZSTD(1)),
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.' CODEC(ZSTD(1)),
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.' CODEC(ZSTD(1)),
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, or lexical, which is a baseline.' CODEC(ZSTD(1)),
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.' CODEC(ZSTD(1)),
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.' CODEC(ZSTD(1)),
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.' CODEC(ZSTD(1)),
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.' CODEC(ZSTD(1)),
    claims UInt64 COMMENT 'How many claims the answer was found to make.' CODEC(ZSTD(1)),
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.' CODEC(ZSTD(1)),
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.' CODEC(ZSTD(1)),
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.' CODEC(ZSTD(1)),
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.' CODEC(ZSTD(1)),
    output_tokens UInt64 COMMENT 'Tokens written.' CODEC(ZSTD(1)),
    detail String COMMENT 'Why there is no score. Never captured text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') MATERIALIZED toDateTime64(judged_at, 3, 'UTC') COMMENT 'judged_at in milliseconds. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Micro(judged_at) COMMENT 'Greater for a later judged_at: of several rows of one score the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT service_length CHECK lengthUTF8(service) BETWEEN 1 AND 255,
    CONSTRAINT fingerprint_is_hex CHECK match(fingerprint, '^[0-9a-f]{8,64}$'),
    CONSTRAINT probabilities_are_probabilities CHECK inclusion_probability > 0 AND inclusion_probability <= 1 AND base_probability > 0 AND base_probability <= 1,
    CONSTRAINT metrics_are_fractions CHECK arrayAll(value -> value >= 0 AND value <= 1, mapValues(metrics)),
    CONSTRAINT cost_is_not_negative CHECK cost_usd >= 0,
    CONSTRAINT detail_length CHECK lengthUTF8(detail) <= 2000
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id, fingerprint)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.calibrations ON CLUSTER '{cluster}'
(
    calibration_id UUID COMMENT 'Idempotency key of the run and metric.' CODEC(ZSTD(1)),
    calibrated_at DateTime64(3, 'UTC') COMMENT 'When it was computed (UTC, milliseconds).' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant whose answers were labelled.' CODEC(ZSTD(1)),
    metric LowCardinality(String) COMMENT 'The metric that was calibrated.' CODEC(ZSTD(1)),
    fingerprint LowCardinality(String) COMMENT 'The judge that was calibrated.' CODEC(ZSTD(1)),
    threshold Float64 COMMENT 'An answer counts as good from this value of the metric on.' CODEC(ZSTD(1)),
    labels UInt64 COMMENT 'How many answers people labelled.' CODEC(ZSTD(1)),
    true_positives UInt64 COMMENT 'People and judge: good.' CODEC(ZSTD(1)),
    false_negatives UInt64 COMMENT 'People: good; judge: bad.' CODEC(ZSTD(1)),
    false_positives UInt64 COMMENT 'People: bad; judge: good.' CODEC(ZSTD(1)),
    true_negatives UInt64 COMMENT 'People and judge: bad.' CODEC(ZSTD(1)),
    kappa Nullable(Float64) COMMENT 'Agreement beyond chance (Cohen). Null when labels or verdicts are all alike.' CODEC(ZSTD(1)),
    tpr Nullable(Float64) COMMENT 'Share of good answers that the judge calls good; null without any.' CODEC(ZSTD(1)),
    tpr_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.' CODEC(ZSTD(1)),
    tpr_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.' CODEC(ZSTD(1)),
    tnr Nullable(Float64) COMMENT 'Share of bad answers that the judge calls bad; null without any.' CODEC(ZSTD(1)),
    tnr_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.' CODEC(ZSTD(1)),
    tnr_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.' CODEC(ZSTD(1)),
    rectifier Float64 COMMENT 'Mean of label minus verdict: what the PPI estimate adds to the raw rate.' CODEC(ZSTD(1)),
    rectifier_variance Float64 COMMENT 'Variance of label minus verdict over the labelled answers.' CODEC(ZSTD(1)),
    pages Bool COMMENT 'Whether alerts on this metric may be critical: kappa and tnr reach what the settings ask for.' CODEC(ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(calibrated_at) COMMENT 'Greater for a later run.' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (project, metric, fingerprint, calibrated_at, calibration_id)
COMMENT 'How far the judge agrees with people: one row for each calibration and metric.';

CREATE VIEW IF NOT EXISTS `assay_local`.scores ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of the answer.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).',
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.',
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.',
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.',
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.',
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.',
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.',
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.',
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, or lexical, which is a baseline.',
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.',
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.',
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.',
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.',
    claims UInt64 COMMENT 'How many claims the answer was found to make.',
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.',
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.',
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.',
    detail String COMMENT 'Why there is no score. Never captured text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, stored_at
FROM `assay_base_local`.scores FINAL
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

CREATE VIEW IF NOT EXISTS `assay_local`.calibrations ON CLUSTER '{cluster}'
(
    calibration_id UUID COMMENT 'Idempotency key of the run and metric.',
    calibrated_at DateTime64(3, 'UTC') COMMENT 'When it was computed (UTC, milliseconds).',
    project LowCardinality(String) COMMENT 'The tenant whose answers were labelled.',
    metric LowCardinality(String) COMMENT 'The metric that was calibrated.',
    fingerprint LowCardinality(String) COMMENT 'The judge that was calibrated.',
    threshold Float64 COMMENT 'An answer counts as good from this value of the metric on.',
    labels UInt64 COMMENT 'How many answers people labelled.',
    true_positives UInt64 COMMENT 'People and judge: good.',
    false_negatives UInt64 COMMENT 'People: good; judge: bad.',
    false_positives UInt64 COMMENT 'People: bad; judge: good.',
    true_negatives UInt64 COMMENT 'People and judge: bad.',
    kappa Nullable(Float64) COMMENT 'Agreement beyond chance (Cohen). Null when labels or verdicts are all alike.',
    tpr Nullable(Float64) COMMENT 'Share of good answers that the judge calls good; null without any.',
    tpr_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    tpr_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    tnr Nullable(Float64) COMMENT 'Share of bad answers that the judge calls bad; null without any.',
    tnr_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    tnr_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    rectifier Float64 COMMENT 'Mean of label minus verdict: what the PPI estimate adds to the raw rate.',
    rectifier_variance Float64 COMMENT 'Variance of label minus verdict over the labelled answers.',
    pages Bool COMMENT 'Whether alerts on this metric may be critical: kappa and tnr reach what the settings ask for.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    calibration_id, calibrated_at, project, metric, fingerprint, threshold, labels, true_positives, false_negatives, false_positives,
    true_negatives, kappa, tpr, tpr_low, tpr_high, tnr, tnr_low, tnr_high, rectifier, rectifier_variance, pages
FROM `assay_base_local`.calibrations FINAL
COMMENT 'How far the judge agrees with people: one row for each calibration and metric.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.alerts ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the format; 1.' CODEC(ZSTD(1)),
    alert_id UUID COMMENT 'The episode: the same from its first transition to its last.' CODEC(ZSTD(1)),
    transition_id UUID COMMENT 'Idempotency key: made of alert_id and sequence.' CODEC(ZSTD(1)),
    sequence UInt64 COMMENT 'Place of the transition in its episode, from 1.' CODEC(ZSTD(1)),
    kind Enum8('score_drift' = 1, 'retrieval_drift' = 2, 'query_drift' = 3, 'silence' = 4, 'judge_errors' = 5, 'judge_drift' = 6, 'failures' = 7, 'lag' = 8, 'watermark_age' = 9, 'budget' = 10, 'judge_stopped' = 11) COMMENT 'What the alert is about. The set is closed.' CODEC(ZSTD(1)),
    state Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state after this transition.' CODEC(ZSTD(1)),
    previous Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state before it; ok for the first.' CODEC(ZSTD(1)),
    severity Enum8('info' = 1, 'warning' = 2, 'critical' = 3) COMMENT 'How urgent this transition is.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant; all for the whole system.' CODEC(ZSTD(1)),
    service LowCardinality(Nullable(String)) COMMENT 'The producer, when the alert is about one.' CODEC(ZSTD(1)),
    metric LowCardinality(Nullable(String)) COMMENT 'What was measured.' CODEC(ZSTD(1)),
    series LowCardinality(Nullable(String)) COMMENT 'What the numbers come from: the fingerprint of the judge or the embedding model.' CODEC(ZSTD(1)),
    since DateTime64(3, 'UTC') COMMENT 'When the change is estimated to have begun (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    at DateTime64(3, 'UTC') COMMENT 'When the transition happened, by the time of the samples (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    value Nullable(Float64) COMMENT 'The metric since the change.' CODEC(ZSTD(1)),
    baseline Nullable(Float64) COMMENT 'The metric as it was before, or the limit.' CODEC(ZSTD(1)),
    effect Nullable(Float64) COMMENT 'How much it changed: relative to the baseline, or a distance between 0 and 1.' CODEC(ZSTD(1)),
    interval Array(Float64) COMMENT '95 % interval of value: low, high; empty without one.' CODEC(ZSTD(1)),
    n Nullable(UInt64) COMMENT 'How many samples value is made of.' CODEC(ZSTD(1)),
    evidence Nullable(Float64) COMMENT 'Evidence as a fraction of what raises an alert; 1 or more has raised it.' CODEC(ZSTD(1)),
    group LowCardinality(String) COMMENT 'Transitions with the same group at the same time belong in one notice.' CODEC(ZSTD(1)),
    summary String COMMENT 'What happened, in one sentence.' CODEC(ZSTD(3)),
    query String COMMENT 'SQL that shows more.' CODEC(ZSTD(3)),
    acknowledge String COMMENT 'The command that acknowledges it.' CODEC(ZSTD(3)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED 9007199254740991 - toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for an earlier stored_at: of several copies of a transition the first is shown.' CODEC(Delta(8), ZSTD(1)),
    INDEX at_range at TYPE minmax GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT sequence_starts_at_1 CHECK sequence >= 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT interval_has_two_ends CHECK length(interval) IN (0, 2),
    CONSTRAINT summary_length CHECK lengthUTF8(summary) BETWEEN 1 AND 500
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (alert_id, transition_id)
SETTINGS replicated_deduplication_window = 1000
COMMENT 'Transitions of alert episodes.';

CREATE VIEW IF NOT EXISTS `assay_local`.alerts ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the format; 1.',
    alert_id UUID COMMENT 'The episode: the same from its first transition to its last.',
    transition_id UUID COMMENT 'Idempotency key: made of alert_id and sequence.',
    sequence UInt64 COMMENT 'Place of the transition in its episode, from 1.',
    kind Enum8('score_drift' = 1, 'retrieval_drift' = 2, 'query_drift' = 3, 'silence' = 4, 'judge_errors' = 5, 'judge_drift' = 6, 'failures' = 7, 'lag' = 8, 'watermark_age' = 9, 'budget' = 10, 'judge_stopped' = 11) COMMENT 'What the alert is about. The set is closed.',
    state Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state after this transition.',
    previous Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state before it; ok for the first.',
    severity Enum8('info' = 1, 'warning' = 2, 'critical' = 3) COMMENT 'How urgent this transition is.',
    project LowCardinality(String) COMMENT 'The tenant; all for the whole system.',
    service LowCardinality(Nullable(String)) COMMENT 'The producer, when the alert is about one.',
    metric LowCardinality(Nullable(String)) COMMENT 'What was measured.',
    series LowCardinality(Nullable(String)) COMMENT 'What the numbers come from: the fingerprint of the judge or the embedding model.',
    since DateTime64(3, 'UTC') COMMENT 'When the change is estimated to have begun (UTC, milliseconds).',
    at DateTime64(3, 'UTC') COMMENT 'When the transition happened, by the time of the samples (UTC, milliseconds).',
    value Nullable(Float64) COMMENT 'The metric since the change.',
    baseline Nullable(Float64) COMMENT 'The metric as it was before, or the limit.',
    effect Nullable(Float64) COMMENT 'How much it changed: relative to the baseline, or a distance between 0 and 1.',
    interval Array(Float64) COMMENT '95 % interval of value: low, high; empty without one.',
    n Nullable(UInt64) COMMENT 'How many samples value is made of.',
    evidence Nullable(Float64) COMMENT 'Evidence as a fraction of what raises an alert; 1 or more has raised it.',
    group LowCardinality(String) COMMENT 'Transitions with the same group at the same time belong in one notice.',
    summary String COMMENT 'What happened, in one sentence.',
    query String COMMENT 'SQL that shows more.',
    acknowledge String COMMENT 'The command that acknowledges it.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, alert_id, transition_id, sequence, kind, state, previous, severity, project, service,
    metric, series, since, at, value, baseline, effect, `interval`, n, evidence, `group`, summary, query, acknowledge, stored_at
FROM `assay_base_local`.alerts FINAL
COMMENT 'Transitions of alert episodes, each once.';

CREATE VIEW IF NOT EXISTS `assay_local`.open_episodes ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the format; 1.',
    alert_id UUID COMMENT 'The episode: the same from its first transition to its last.',
    transition_id UUID COMMENT 'Idempotency key: made of alert_id and sequence.',
    sequence UInt64 COMMENT 'Place of the transition in its episode, from 1.',
    kind Enum8('score_drift' = 1, 'retrieval_drift' = 2, 'query_drift' = 3, 'silence' = 4, 'judge_errors' = 5, 'judge_drift' = 6, 'failures' = 7, 'lag' = 8, 'watermark_age' = 9, 'budget' = 10, 'judge_stopped' = 11) COMMENT 'What the alert is about. The set is closed.',
    state Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state after this transition.',
    previous Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state before it; ok for the first.',
    severity Enum8('info' = 1, 'warning' = 2, 'critical' = 3) COMMENT 'How urgent this transition is.',
    project LowCardinality(String) COMMENT 'The tenant; all for the whole system.',
    service LowCardinality(Nullable(String)) COMMENT 'The producer, when the alert is about one.',
    metric LowCardinality(Nullable(String)) COMMENT 'What was measured.',
    series LowCardinality(Nullable(String)) COMMENT 'What the numbers come from: the fingerprint of the judge or the embedding model.',
    since DateTime64(3, 'UTC') COMMENT 'When the change is estimated to have begun (UTC, milliseconds).',
    at DateTime64(3, 'UTC') COMMENT 'When the transition happened, by the time of the samples (UTC, milliseconds).',
    value Nullable(Float64) COMMENT 'The metric since the change.',
    baseline Nullable(Float64) COMMENT 'The metric as it was before, or the limit.',
    effect Nullable(Float64) COMMENT 'How much it changed: relative to the baseline, or a distance between 0 and 1.',
    interval Array(Float64) COMMENT '95 % interval of value: low, high; empty without one.',
    n Nullable(UInt64) COMMENT 'How many samples value is made of.',
    evidence Nullable(Float64) COMMENT 'Evidence as a fraction of what raises an alert; 1 or more has raised it.',
    group LowCardinality(String) COMMENT 'Transitions with the same group at the same time belong in one notice.',
    summary String COMMENT 'What happened, in one sentence.',
    query String COMMENT 'SQL that shows more.',
    acknowledge String COMMENT 'The command that acknowledges it.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, alert_id, transition_id, sequence, kind, state, previous, severity, project, service,
    metric, series, since, at, value, baseline, effect, `interval`, n, evidence, `group`, summary, query, acknowledge, stored_at
FROM
(
    SELECT * FROM `assay_base_local`.alerts FINAL ORDER BY sequence DESC LIMIT 1 BY alert_id
)
WHERE state IN ('warn', 'critical', 'recovering')
COMMENT 'The latest transition of every alert episode that is not resolved.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)) AFTER pii_attempted;

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)) AFTER pii_attempted;

ALTER TABLE `assay_base_local`.feedback ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data, whatever the policy did with them.' CODEC(ZSTD(1)) AFTER policy,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out of the row: redacted, labelled or hashed.' CODEC(ZSTD(1)) AFTER pii_attempted;

ALTER TABLE `assay_base_local`.capture_failures ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS pii_attempted Array(LowCardinality(String)) COMMENT 'What was found in the event: categories of personal data. Empty unless the policy refused it.' CODEC(ZSTD(1)) AFTER created_at,
    ADD COLUMN IF NOT EXISTS pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories because of which the policy refused the event.' CODEC(ZSTD(1)) AFTER pii_attempted;

CREATE OR REPLACE VIEW `assay_local`.candidates ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, pii_attempted, pii_blocked,
    stored_at
FROM `assay_base_local`.candidates FINAL
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE OR REPLACE VIEW `assay_local`.answers ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked,
    stored_at
FROM `assay_base_local`.answers FINAL
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE OR REPLACE VIEW `assay_local`.feedback ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked,
    stored_at
FROM `assay_base_local`.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE OR REPLACE VIEW `assay_local`.capture_failures ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, failure_id, event_id, entry_id, project, service, stage, reason, error_class, detail,
    deliveries, created_at, pii_attempted, pii_blocked,
    stored_at
FROM `assay_base_local`.capture_failures FINAL
COMMENT 'What could not be stored, and why. Never the content.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.eval_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run: made of its name, its start and what it measured, so that storing it again replaces it.' CODEC(ZSTD(1)),
    name String COMMENT 'What people call the run: the folder it was written to.' CODEC(ZSTD(3)),
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.' CODEC(ZSTD(1)),
    label Nullable(String) COMMENT 'What reports call it.' CODEC(ZSTD(1)),
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset.' CODEC(ZSTD(1)),
    dataset_version LowCardinality(String) COMMENT 'Its version.' CODEC(ZSTD(1)),
    dataset_fingerprint LowCardinality(String) COMMENT 'SHA-256 over its cases: runs over equal ones can be compared case by case.' CODEC(ZSTD(1)),
    target String COMMENT 'What was asked, as it was named: http://host/path, module:function or a command.' CODEC(ZSTD(3)),
    code_version Nullable(String) COMMENT 'The commit that was checked out where the run was made.' CODEC(ZSTD(1)),
    judge LowCardinality(Nullable(String)) COMMENT 'Fingerprint of the judge behind the metrics of answers; null without one.' CODEC(ZSTD(1)),
    seed Int64 COMMENT 'Of the resamples behind the intervals.' CODEC(ZSTD(1)),
    config String COMMENT 'Everything that was configured: a JSON object as text.' CODEC(ZSTD(3)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    completed_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null for one that was stopped.' CODEC(ZSTD(1)),
    cases UInt64 COMMENT 'How many cases have a result.' CODEC(ZSTD(1)),
    errored UInt64 COMMENT 'How many of them ended in an error.' CODEC(ZSTD(1)),
    means Map(LowCardinality(String), Float64) COMMENT 'Mean of each metric over the cases it applies to, weighted by the inverse of their inclusion probability.' CODEC(ZSTD(1)),
    latency_ms Map(LowCardinality(String), Float64) COMMENT 'Quantiles of the latency in milliseconds: latency_p50, latency_p95.' CODEC(ZSTD(1)),
    details String COMMENT 'What a later version may have written beside these columns: a JSON object as text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') MATERIALIZED started_at COMMENT 'started_at. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for a later stored_at: of several copies the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT name_length CHECK lengthUTF8(name) BETWEEN 1 AND 255,
    CONSTRAINT config_is_json CHECK isValidJSON(config)
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (project, run_id)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Evaluation runs: one row each.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.eval_results ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    case_id String COMMENT 'The case of the golden dataset.' CODEC(ZSTD(3)),
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.' CODEC(ZSTD(1)),
    place UInt64 COMMENT 'Place of the case in the dataset, from 0.' CODEC(ZSTD(1)),
    query_type LowCardinality(String) COMMENT 'Type of the query: temporal, actor, technical, status, multi-hop or null.' CODEC(ZSTD(1)),
    retrieved Array(String) COMMENT 'What came back, best first: slugs, or source::slug.' CODEC(ZSTD(3)),
    latency_ms Nullable(Float64) COMMENT 'How long it took, in milliseconds; null without an answer.' CODEC(ZSTD(1)),
    metrics Map(LowCardinality(String), Nullable(Float64)) COMMENT 'What was measured; null where a metric does not apply.' CODEC(ZSTD(1)),
    error Nullable(String) COMMENT 'Why there is no answer. Never what was asked.' CODEC(ZSTD(1)),
    tries UInt64 COMMENT 'How often it was asked.' CODEC(ZSTD(1)),
    cluster Nullable(String) COMMENT 'Cases of one session or document share it.' CODEC(ZSTD(1)),
    weight Float64 COMMENT 'Inverse of the probability with which the case was chosen.' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    details String COMMENT 'What a later version may have written beside these columns: a JSON object as text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') MATERIALIZED started_at COMMENT 'started_at. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for a later stored_at: of several copies the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT case_id_length CHECK lengthUTF8(case_id) BETWEEN 1 AND 512,
    CONSTRAINT weight_is_above_0 CHECK weight > 0,
    CONSTRAINT retrieved_items CHECK length(retrieved) <= 10000,
    CONSTRAINT error_length CHECK lengthUTF8(ifNull(error, '')) <= 2000
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (project, run_id, case_id)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'What each case of an evaluation run came to: one row for each run and case.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.eval_outcomes ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    attempt_id UUID COMMENT 'The attempt. It has two rows at first, started and its end, of which the end is shown.' CODEC(ZSTD(1)),
    evaluation LowCardinality(String) COMMENT 'Which evaluation: the name of its dataset and its target, hashed.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the attempt began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it runs, or when it was killed.' CODEC(ZSTD(1)),
    outcome Enum8('started' = 1, 'pass' = 2, 'fail' = 3, 'inconclusive' = 4, 'error' = 5, 'budget_exceeded' = 6, 'rate_limited' = 7, 'no_judge_key' = 8) COMMENT 'How it ended; started while it runs, or when it was killed. The set is closed.' CODEC(ZSTD(1)),
    run_id Nullable(UUID) COMMENT 'The run it made.' CODEC(ZSTD(1)),
    run_name String COMMENT 'Its name; empty without one.' CODEC(ZSTD(3)),
    baseline String COMMENT 'The run it was compared with; empty without one.' CODEC(ZSTD(3)),
    cases UInt64 COMMENT 'How many cases have a result.' CODEC(ZSTD(1)),
    errored UInt64 COMMENT 'How many of them ended in an error.' CODEC(ZSTD(1)),
    failed_metrics Array(LowCardinality(String)) COMMENT 'The metrics that failed.' CODEC(ZSTD(1)),
    cost_usd Float64 COMMENT 'What it cost, in US dollars.' CODEC(ZSTD(1)),
    detail String COMMENT 'Why, in a sentence. Never captured text.' CODEC(ZSTD(3)),
    alerts Array(String) COMMENT 'The transitions of alerts that this outcome made, as published: JSON objects as text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') MATERIALIZED started_at COMMENT 'started_at. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED if(outcome = 'started', 0, toUnixTimestamp64Milli(stored_at)) COMMENT 'Greater for the end of an attempt than for its start.' CODEC(ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT cost_is_not_negative CHECK cost_usd >= 0,
    CONSTRAINT detail_length CHECK lengthUTF8(detail) <= 2000
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (project, attempt_id)
SETTINGS replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'How nightly evaluations ended: one row for each attempt.';

CREATE VIEW IF NOT EXISTS `assay_local`.eval_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run: made of its name, its start and what it measured, so that storing it again replaces it.',
    name String COMMENT 'What people call the run: the folder it was written to.',
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.',
    label Nullable(String) COMMENT 'What reports call it.',
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset.',
    dataset_version LowCardinality(String) COMMENT 'Its version.',
    dataset_fingerprint LowCardinality(String) COMMENT 'SHA-256 over its cases: runs over equal ones can be compared case by case.',
    target String COMMENT 'What was asked, as it was named: http://host/path, module:function or a command.',
    code_version Nullable(String) COMMENT 'The commit that was checked out where the run was made.',
    judge LowCardinality(Nullable(String)) COMMENT 'Fingerprint of the judge behind the metrics of answers; null without one.',
    seed Int64 COMMENT 'Of the resamples behind the intervals.',
    config String COMMENT 'Everything that was configured: a JSON object as text.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    completed_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null for one that was stopped.',
    cases UInt64 COMMENT 'How many cases have a result.',
    errored UInt64 COMMENT 'How many of them ended in an error.',
    means Map(LowCardinality(String), Float64) COMMENT 'Mean of each metric over the cases it applies to, weighted by the inverse of their inclusion probability.',
    latency_ms Map(LowCardinality(String), Float64) COMMENT 'Quantiles of the latency in milliseconds: latency_p50, latency_p95.',
    details String COMMENT 'What a later version may have written beside these columns: a JSON object as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, name, project, label, dataset, dataset_version, dataset_fingerprint, target, code_version,
    judge, seed, config, started_at, completed_at, cases, errored, means, latency_ms, details, stored_at
FROM `assay_base_local`.eval_runs FINAL
COMMENT 'Evaluation runs: one row each.';

CREATE VIEW IF NOT EXISTS `assay_local`.eval_results ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run.',
    case_id String COMMENT 'The case of the golden dataset.',
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.',
    place UInt64 COMMENT 'Place of the case in the dataset, from 0.',
    query_type LowCardinality(String) COMMENT 'Type of the query: temporal, actor, technical, status, multi-hop or null.',
    retrieved Array(String) COMMENT 'What came back, best first: slugs, or source::slug.',
    latency_ms Nullable(Float64) COMMENT 'How long it took, in milliseconds; null without an answer.',
    metrics Map(LowCardinality(String), Nullable(Float64)) COMMENT 'What was measured; null where a metric does not apply.',
    error Nullable(String) COMMENT 'Why there is no answer. Never what was asked.',
    tries UInt64 COMMENT 'How often it was asked.',
    cluster Nullable(String) COMMENT 'Cases of one session or document share it.',
    weight Float64 COMMENT 'Inverse of the probability with which the case was chosen.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    details String COMMENT 'What a later version may have written beside these columns: a JSON object as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, case_id, project, place, query_type, retrieved, latency_ms, metrics, error, tries, cluster,
    weight, started_at, details, stored_at
FROM `assay_base_local`.eval_results FINAL
COMMENT 'What each case of an evaluation run came to: one row for each run and case.';

CREATE VIEW IF NOT EXISTS `assay_local`.eval_outcomes ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    attempt_id UUID COMMENT 'The attempt. It has two rows at first, started and its end, of which the end is shown.',
    evaluation LowCardinality(String) COMMENT 'Which evaluation: the name of its dataset and its target, hashed.',
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the attempt began (UTC, milliseconds).',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it runs, or when it was killed.',
    outcome Enum8('started' = 1, 'pass' = 2, 'fail' = 3, 'inconclusive' = 4, 'error' = 5, 'budget_exceeded' = 6, 'rate_limited' = 7, 'no_judge_key' = 8) COMMENT 'How it ended; started while it runs, or when it was killed. The set is closed.',
    run_id Nullable(UUID) COMMENT 'The run it made.',
    run_name String COMMENT 'Its name; empty without one.',
    baseline String COMMENT 'The run it was compared with; empty without one.',
    cases UInt64 COMMENT 'How many cases have a result.',
    errored UInt64 COMMENT 'How many of them ended in an error.',
    failed_metrics Array(LowCardinality(String)) COMMENT 'The metrics that failed.',
    cost_usd Float64 COMMENT 'What it cost, in US dollars.',
    detail String COMMENT 'Why, in a sentence. Never captured text.',
    alerts Array(String) COMMENT 'The transitions of alerts that this outcome made, as published: JSON objects as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, attempt_id, evaluation, project, started_at, ended_at, outcome, run_id, run_name, baseline, cases,
    errored, failed_metrics, cost_usd, detail, alerts, stored_at
FROM `assay_base_local`.eval_outcomes FINAL
COMMENT 'How nightly evaluations ended: one row for each attempt.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.feedback ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.capture_failures ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.scores ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.alerts ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.eval_runs ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.eval_results ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

ALTER TABLE `assay_base_local`.eval_outcomes ON CLUSTER '{cluster}' MODIFY SETTING replicated_deduplication_window = 0;

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_source ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, service, tool, minute,
    events, failures, incidents, failure_reasons, without_result, positive, negative, latency_ms_sum, latency_ms_max,
    mapFromArrays(arrayDistinct(latencies), arrayMap(us -> countEqual(latencies, us), arrayDistinct(latencies))) AS latency_us,
    scored, top_score_sum, top_score_min, pii_events, pii_families, fingerprint, created_at
FROM
(
    SELECT
        'retrieval' AS kind, project, service, toString(tool_name) AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        countIf(empty(retrieved_chunk_ids)) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(latency_ms, 1e15)) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        countIf(notEmpty(retrieved_scores)) AS scored,
        sumIf(greatest(-1e15, least(retrieved_scores[1], 1e15)), notEmpty(retrieved_scores)) AS top_score_sum,
        minIf(toNullable(retrieved_scores[1]), notEmpty(retrieved_scores)) AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.candidates AS t FINAL
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
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.answers AS t FINAL
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
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.feedback AS t FINAL
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
        sum(reinterpretAsInt64(cityHash64(failure_id, t.created_at))) AS fingerprint, max(t.created_at) AS created_at
    FROM `assay_base_local`.capture_failures AS t FINAL
    GROUP BY project, service, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_stale ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT least(max(refreshed_at), now64(3, 'UTC')) FROM `assay_base_local`.rollup_minute) - toIntervalMinute(2) AS since
SELECT DISTINCT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, minute
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.candidates WHERE stored_at >= since
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.answers WHERE stored_at >= since
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.feedback WHERE stored_at >= since
    UNION ALL
    SELECT 'failure' AS kind, project, toStartOfMinute(created_at) AS minute
    FROM `assay_base_local`.capture_failures
    WHERE failure_id IN (SELECT failure_id FROM `assay_base_local`.capture_failures WHERE stored_at >= since)
)
COMMENT 'Minutes into which something was stored since the last refresh.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_differing ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, hour
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.candidates FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.answers FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.feedback FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        'failure' AS kind, project, toStartOfHour(created_at) AS hour,
        sum(reinterpretAsInt64(cityHash64(failure_id, created_at))) AS difference
    FROM `assay_base_local`.capture_failures FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        toString(kind) AS kind, project, toStartOfHour(minute) AS hour,
        toInt64(countIf(NOT isFinite(latency_ms_sum + top_score_sum))) - sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_minute FINAL
    GROUP BY kind, project, hour
)
GROUP BY kind, project, hour
HAVING sum(difference) != 0
COMMENT 'Hours of rollup_minute in which something else was counted than the tables hold. Reads all of both.';

DROP VIEW IF EXISTS `assay_base_local`.rollup_minute_refresh ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE APPEND TO `assay_base_local`.rollup_minute EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_minute) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute_source
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM `assay_base_local`.rollup_minute_source
        WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS `assay_base_local`.rollup_minute_repair ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR APPEND TO `assay_base_local`.rollup_minute EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_minute) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute_source
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM `assay_base_local`.rollup_minute_source
        WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE OFFSET 20 SECOND APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN
    (
        SELECT kind, project, toStartOfHour(minute)
        FROM `assay_base_local`.rollup_minute
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM `assay_base_local`.rollup_hour) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR OFFSET 5 MINUTE APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_hour_differing)
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

ALTER TABLE `assay_base_local`.scores ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.' CODEC(ZSTD(1)) AFTER detail;

CREATE OR REPLACE VIEW `assay_local`.scores ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of the answer.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).',
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.',
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.',
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.',
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.',
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.',
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.',
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.',
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, or lexical, which is a baseline.',
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.',
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.',
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.',
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.',
    claims UInt64 COMMENT 'How many claims the answer was found to make.',
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.',
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.',
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.',
    detail String COMMENT 'Why there is no score. Never captured text.',
    verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, verdicts, stored_at
FROM `assay_base_local`.scores FINAL
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

ALTER TABLE `assay_base_local`.scores ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS backend 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.';

CREATE OR REPLACE VIEW `assay_local`.scores ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of the answer.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).',
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.',
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.',
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.',
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.',
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.',
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.',
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.',
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.',
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.',
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.',
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.',
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.',
    claims UInt64 COMMENT 'How many claims the answer was found to make.',
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.',
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.',
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.',
    detail String COMMENT 'Why there is no score. Never captured text.',
    verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, verdicts, stored_at
FROM `assay_base_local`.scores FINAL
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.operations_audit ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    operation_id UUID COMMENT 'The attempt. Its start and its end share it.' CODEC(ZSTD(1)),
    outcome Enum8('started' = 1, 'done' = 2, 'failed' = 3, 'interrupted' = 4) COMMENT 'What this record is about: the start, or how the operation ended. The set is closed.' CODEC(ZSTD(1)),
    at DateTime64(3, 'UTC') COMMENT 'When the record was made (clock of the host that ran the operation, UTC, milliseconds).' CODEC(ZSTD(1)),
    operation LowCardinality(String) COMMENT 'The operation, named like its command: prune, dead drop.' CODEC(ZSTD(1)),
    actor String COMMENT 'Login name of the person, or uid N without one.' CODEC(ZSTD(1)),
    identity LowCardinality(String) COMMENT 'User of Redis or the store that made the change.' CODEC(ZSTD(1)),
    host String COMMENT 'Name of the host that ran the operation.' CODEC(ZSTD(1)),
    through LowCardinality(String) COMMENT 'Entry point: command line.' CODEC(ZSTD(1)),
    target String COMMENT 'Range of the operation: filters and ids, a JSON object as text. Never captured text.' CODEC(ZSTD(3)),
    planned UInt64 COMMENT 'Number of items to change, as counted before.' CODEC(ZSTD(1)),
    changed UInt64 COMMENT 'Number of items changed; 0 at the start.' CODEC(ZSTD(1)),
    comment String COMMENT 'Why, in the words of the actor, scrubbed; empty without one.' CODEC(ZSTD(3)),
    error_kind LowCardinality(String) COMMENT 'Kind or class of the error of a failed operation; empty without one.' CODEC(ZSTD(1)),
    version LowCardinality(String) COMMENT 'Version of Assay that ran the operation.' CODEC(ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.' CODEC(ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT operation_is_a_name CHECK match(operation, '^[a-z][a-z-]*( [a-z][a-z-]*)?$') AND length(operation) <= 64,
    CONSTRAINT actor_length CHECK lengthUTF8(actor) BETWEEN 1 AND 128,
    CONSTRAINT names_length CHECK lengthUTF8(identity) <= 128 AND lengthUTF8(host) <= 128 AND lengthUTF8(through) <= 128,
    CONSTRAINT target_is_json CHECK isValidJSON(target) AND lengthUTF8(target) <= 16000,
    CONSTRAINT comment_length CHECK lengthUTF8(comment) <= 500,
    CONSTRAINT error_kind_length CHECK lengthUTF8(error_kind) <= 128,
    CONSTRAINT version_length CHECK lengthUTF8(version) <= 64
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (operation_id, outcome)
SETTINGS replicated_deduplication_window = 0
COMMENT 'Audit records of operations: the start of each, and its end.';

CREATE VIEW IF NOT EXISTS `assay_local`.operations_audit ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    operation_id UUID COMMENT 'The attempt. Its start and its end share it.',
    outcome Enum8('started' = 1, 'done' = 2, 'failed' = 3, 'interrupted' = 4) COMMENT 'What this record is about: the start, or how the operation ended. The set is closed.',
    at DateTime64(3, 'UTC') COMMENT 'When the record was made (clock of the host that ran the operation, UTC, milliseconds).',
    operation LowCardinality(String) COMMENT 'The operation, named like its command: prune, dead drop.',
    actor String COMMENT 'Login name of the person, or uid N without one.',
    identity LowCardinality(String) COMMENT 'User of Redis or the store that made the change.',
    host String COMMENT 'Name of the host that ran the operation.',
    through LowCardinality(String) COMMENT 'Entry point: command line.',
    target String COMMENT 'Range of the operation: filters and ids, a JSON object as text. Never captured text.',
    planned UInt64 COMMENT 'Number of items to change, as counted before.',
    changed UInt64 COMMENT 'Number of items changed; 0 at the start.',
    comment String COMMENT 'Why, in the words of the actor, scrubbed; empty without one.',
    error_kind LowCardinality(String) COMMENT 'Kind or class of the error of a failed operation; empty without one.',
    version LowCardinality(String) COMMENT 'Version of Assay that ran the operation.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, operation_id, outcome, at, operation, actor, identity, host, through, target,
    planned, changed, comment, error_kind, version, stored_at
FROM `assay_base_local`.operations_audit
ORDER BY stored_at
LIMIT 1 BY operation_id, outcome
COMMENT 'Audit records of operations: the start of each, and its end. The view operations has both in one row.';

CREATE VIEW IF NOT EXISTS `assay_local`.operations ON CLUSTER '{cluster}'
(
    operation_id UUID COMMENT 'The attempt.',
    operation LowCardinality(String) COMMENT 'The operation, named like its command: prune, dead drop.',
    outcome Enum8('started' = 1, 'done' = 2, 'failed' = 3, 'interrupted' = 4) COMMENT 'How it ended; started while it runs, or if it was killed. The set is closed.',
    started_at DateTime64(3, 'UTC') COMMENT 'When it started (clock of the host that ran it, UTC, milliseconds).',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it runs, or if it was killed.',
    actor String COMMENT 'Login name of the person, or uid N without one.',
    identity LowCardinality(String) COMMENT 'User of Redis or the store that made the change.',
    host String COMMENT 'Name of the host that ran the operation.',
    through LowCardinality(String) COMMENT 'Entry point: command line.',
    target String COMMENT 'Range of the operation: filters and ids, a JSON object as text. Never captured text.',
    planned UInt64 COMMENT 'Number of items to change, as counted before.',
    changed UInt64 COMMENT 'Number of items changed, as far as the operation got; 0 while it runs.',
    comment String COMMENT 'Why, in the words of the actor, scrubbed; empty without one.',
    error_kind LowCardinality(String) COMMENT 'Kind or class of the error of a failed operation; empty without one.',
    version LowCardinality(String) COMMENT 'Version of Assay that ran the operation.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the first of its records was written (clock of the store, UTC, microseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    r.operation_id AS operation_id,
    argMin(r.operation, (r.outcome, r.stored_at)) AS operation,
    if(countIf(r.outcome != 'started') = 0, 'started', toString(argMinIf(r.outcome, r.stored_at, r.outcome != 'started'))) AS outcome,
    argMin(r.at, (r.outcome, r.stored_at)) AS started_at,
    if(countIf(r.outcome != 'started') = 0, NULL, argMinIf(r.at, r.stored_at, r.outcome != 'started')) AS ended_at,
    argMin(r.actor, (r.outcome, r.stored_at)) AS actor,
    argMin(r.identity, (r.outcome, r.stored_at)) AS identity,
    argMin(r.host, (r.outcome, r.stored_at)) AS host,
    argMin(r.through, (r.outcome, r.stored_at)) AS through,
    argMin(r.target, (r.outcome, r.stored_at)) AS target,
    argMin(r.planned, (r.outcome, r.stored_at)) AS planned,
    argMinIf(r.changed, r.stored_at, r.outcome != 'started') AS changed,
    argMin(r.comment, (r.outcome, r.stored_at)) AS comment,
    argMinIf(r.error_kind, r.stored_at, r.outcome != 'started') AS error_kind,
    argMin(r.version, (r.outcome, r.stored_at)) AS version,
    min(r.stored_at) AS stored_at
FROM `assay_base_local`.operations_audit AS r
GROUP BY r.operation_id
COMMENT 'Operations that deleted stored data or changed what it means: who, what range, why. One row for each attempt.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)) AFTER pii_blocked,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)) AFTER pii_blocked,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE `assay_base_local`.feedback ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'Conversation that the event belongs to, named by the producer; null without one.' CODEC(ZSTD(1)) AFTER pii_blocked,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

CREATE TABLE IF NOT EXISTS `assay_base_local`.tool_calls ON CLUSTER '{cluster}'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Captured tool calls: what was called with which arguments, and how it ended.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.server_events ON CLUSTER '{cluster}'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Events of the servers that run tools: starts, stops and mismatches.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.session_parts ON CLUSTER '{cluster}'
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
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS materialize_ttl_recalculate_only = 1
COMMENT 'Sessions of agents, in parts. The view sessions shows one row for each session.';

CREATE OR REPLACE VIEW `assay_local`.candidates ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM `assay_base_local`.candidates FINAL
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE OR REPLACE VIEW `assay_local`.answers ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM `assay_base_local`.answers FINAL
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE OR REPLACE VIEW `assay_local`.feedback ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM `assay_base_local`.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE VIEW IF NOT EXISTS `assay_local`.tool_calls ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'tool_call' AS kind, tool_name, args_summary, status,
    error_kind, duration_ms, result_summary, CAST(NULL, 'Nullable(String)') AS event_subtype,
    CAST(NULL, 'Nullable(String)') AS message, call_id, agent_name, parent_call_id, exit_code, seq, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted,
    pii_blocked, session_id, stored_at
FROM `assay_base_local`.tool_calls FINAL
COMMENT 'Captured tool calls: what was called with which arguments, and how it ended.';

CREATE VIEW IF NOT EXISTS `assay_local`.server_events ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'server_event' AS kind,
    CAST(NULL, 'Nullable(String)') AS tool_name, args_summary, CAST(NULL, 'Nullable(String)') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS duration_ms, result_summary,
    event_subtype, message, call_id, agent_name, parent_call_id, exit_code, seq, created_at, event_id, event_time,
    project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    stored_at
FROM `assay_base_local`.server_events FINAL
COMMENT 'Events of the servers that run tools: starts, stops and mismatches.';

CREATE VIEW IF NOT EXISTS `assay_local`.session_parts ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, revision, digest, part, parts, title, created, updated, source, source_version, status,
    parent_session_id, forked_from, model, turns, tools, tool_errors, cost_usd, input_tokens, output_tokens, request,
    response, intermediate_events, metadata, created_at, event_id, event_time, project, service, occurred_at,
    traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id, stored_at
FROM `assay_base_local`.session_parts FINAL
COMMENT 'Sessions of agents, in parts. The view sessions shows one row for each session.';

ALTER TABLE `assay_base_local`.rollup_minute ON CLUSTER '{cluster}'
    MODIFY COLUMN kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6),
    ADD COLUMN IF NOT EXISTS statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)) AFTER pii_families;

ALTER TABLE `assay_base_local`.rollup_minute ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS without_result 'Retrievals that found nothing, and tool calls whose status is empty.';

ALTER TABLE `assay_base_local`.rollup_minute ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS tool 'The operation that retrieved, or the tool called; empty for other kinds.';

ALTER TABLE `assay_base_local`.rollup_hour ON CLUSTER '{cluster}'
    MODIFY COLUMN kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6),
    ADD COLUMN IF NOT EXISTS statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)) AFTER pii_families;

ALTER TABLE `assay_base_local`.rollup_hour ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS without_result 'Retrievals that found nothing, and tool calls whose status is empty.';

ALTER TABLE `assay_base_local`.rollup_hour ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS tool 'The operation that retrieved, or the tool called; empty for other kinds.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_source ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
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
        countIf(empty(retrieved_chunk_ids)) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
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
    FROM `assay_base_local`.candidates AS t FINAL
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
    FROM `assay_base_local`.answers AS t FINAL
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
    FROM `assay_base_local`.feedback AS t FINAL
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
    FROM `assay_base_local`.capture_failures AS t FINAL
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
    FROM `assay_base_local`.tool_calls AS t FINAL
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
    FROM `assay_base_local`.server_events AS t FINAL
    GROUP BY project, service, tool, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_stale ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT least(max(refreshed_at), now64(3, 'UTC')) FROM `assay_base_local`.rollup_minute) - toIntervalMinute(2) AS since
SELECT DISTINCT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, minute
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.candidates WHERE stored_at >= since
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.answers WHERE stored_at >= since
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.feedback WHERE stored_at >= since
    UNION ALL
    SELECT 'tool_call' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.tool_calls WHERE stored_at >= since
    UNION ALL
    SELECT 'server_event' AS kind, project, toStartOfMinute(event_time) AS minute FROM `assay_base_local`.server_events WHERE stored_at >= since
    UNION ALL
    SELECT 'failure' AS kind, project, toStartOfMinute(created_at) AS minute
    FROM `assay_base_local`.capture_failures
    WHERE failure_id IN (SELECT failure_id FROM `assay_base_local`.capture_failures WHERE stored_at >= since)
)
COMMENT 'Minutes into which something was stored since the last refresh.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_differing ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, hour
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.candidates FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.answers FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.feedback FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'tool_call' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.tool_calls FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'server_event' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM `assay_base_local`.server_events FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        'failure' AS kind, project, toStartOfHour(created_at) AS hour,
        sum(reinterpretAsInt64(cityHash64(failure_id, created_at))) AS difference
    FROM `assay_base_local`.capture_failures FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        toString(kind) AS kind, project, toStartOfHour(minute) AS hour,
        toInt64(countIf(NOT isFinite(latency_ms_sum + top_score_sum))) - sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_minute FINAL
    GROUP BY kind, project, hour
)
GROUP BY kind, project, hour
HAVING sum(difference) != 0
COMMENT 'Hours of rollup_minute in which something else was counted than the tables hold. Reads all of both.';

DROP VIEW IF EXISTS `assay_base_local`.rollup_minute_refresh ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE APPEND TO `assay_base_local`.rollup_minute EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_minute) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        statuses, fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute_source
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM `assay_base_local`.rollup_minute_source
        WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM `assay_base_local`.rollup_minute_stale)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS `assay_base_local`.rollup_minute_repair ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_minute_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR APPEND TO `assay_base_local`.rollup_minute EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_minute) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        statuses, fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute_source
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM `assay_base_local`.rollup_minute_source
        WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_minute_differing)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE OFFSET 20 SECOND APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN
    (
        SELECT kind, project, toStartOfHour(minute)
        FROM `assay_base_local`.rollup_minute
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM `assay_base_local`.rollup_hour) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR OFFSET 5 MINUTE APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_hour_differing)
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE OR REPLACE VIEW `assay_local`.rollup_minute ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    minute DateTime('UTC') COMMENT 'Start of the minute of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result,
    positive, negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, created_at, refreshed_at
FROM `assay_base_local`.rollup_minute FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by minute. A row is complete for its minute: add rows up over services, tools, kinds and minutes.';

CREATE OR REPLACE VIEW `assay_local`.rollup_hour ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, hour, events, failures, incidents, failure_reasons, without_result, positive,
    negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, created_at, refreshed_at
FROM `assay_base_local`.rollup_hour FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by hour, added up from minutes.';

ALTER TABLE `assay_base_local`.rollup_hour ON CLUSTER '{cluster}' MODIFY COLUMN latency_us CODEC(T64);

ALTER TABLE `assay_base_local`.scores ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'The session that was judged; null for an answer.' CODEC(ZSTD(1)) AFTER verdicts,
    ADD COLUMN IF NOT EXISTS revision UInt64 COMMENT 'The revision of the session that was judged; 0 for an answer.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS rubric Array(Tuple(dimension LowCardinality(String), criterion String, absence Bool, verdict Enum8('yes' = 1, 'no' = 2, 'not_applicable' = 3, 'not_judged' = 4), demoted Bool, turn UInt64)) COMMENT 'The rubric of the session: its items, written by the judge and scrubbed, with the verdict on each and the turn of its evidence.' CODEC(ZSTD(3)) AFTER revision,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE `assay_base_local`.scores ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS event_id 'The answer that was judged. For a session, an id made of its project, id and start.';

CREATE OR REPLACE VIEW `assay_local`.scores ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged. For a session, an id made of its project, id and start.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of the answer.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).',
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.',
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.',
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.',
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.',
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.',
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.',
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.',
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.',
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.',
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.',
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.',
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.',
    claims UInt64 COMMENT 'How many claims the answer was found to make.',
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.',
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.',
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.',
    detail String COMMENT 'Why there is no score. Never captured text.',
    verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.',
    session_id Nullable(String) COMMENT 'The session that was judged; null for an answer.',
    revision UInt64 COMMENT 'The revision of the session that was judged; 0 for an answer.',
    rubric Array(Tuple(dimension LowCardinality(String), criterion String, absence Bool, verdict Enum8('yes' = 1, 'no' = 2, 'not_applicable' = 3, 'not_judged' = 4), demoted Bool, turn UInt64)) COMMENT 'The rubric of the session: its items, written by the judge and scrubbed, with the verdict on each and the turn of its evidence.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, verdicts, session_id, revision, rubric, stored_at
FROM `assay_base_local`.scores FINAL
COMMENT 'What the judge thinks of each answer and session: one row for each of them and judge.';

DROP VIEW IF EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}';

DROP VIEW IF EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}';

DROP TABLE IF EXISTS `assay_base_local`.rollup_hour ON CLUSTER '{cluster}';

CREATE TABLE IF NOT EXISTS `assay_base_local`.rollup_hour ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.' CODEC(ZSTD(1)),
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).' CODEC(Delta(4), ZSTD(1)),
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.' CODEC(T64, ZSTD(1)),
    failures UInt64 COMMENT 'Events that were lost for the tables.' CODEC(ZSTD(1)),
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.' CODEC(ZSTD(1)),
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.' CODEC(ZSTD(1)),
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.' CODEC(ZSTD(1)),
    positive UInt64 COMMENT 'Feedback that was positive.' CODEC(ZSTD(1)),
    negative UInt64 COMMENT 'Feedback that was negative.' CODEC(ZSTD(1)),
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.' CODEC(ZSTD(1)),
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.' CODEC(ZSTD(1)),
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.' CODEC(T64),
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.' CODEC(ZSTD(1)),
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.' CODEC(ZSTD(1)),
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.' CODEC(ZSTD(1)),
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.' CODEC(ZSTD(1)),
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)),
    fingerprint Int64 COMMENT 'Sum of hashes of the copies that were counted: tells whether exactly these are in the tables.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(refreshed_at) COMMENT 'The latest count is shown.' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, kind, service, tool)
SETTINGS index_granularity = 256, materialize_ttl_recalculate_only = 1
COMMENT 'Events and failures by hour, added up from minutes.';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE OFFSET 20 SECOND APPEND TO `assay_base_local`.rollup_hour
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN
    (
        SELECT kind, project, toStartOfHour(minute)
        FROM `assay_base_local`.rollup_minute
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM `assay_base_local`.rollup_hour) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_hour_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR OFFSET 5 MINUTE APPEND TO `assay_base_local`.rollup_hour EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM `assay_base_local`.rollup_hour_differing)
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE TABLE IF NOT EXISTS `assay_base_local`.rollup_day ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.' CODEC(ZSTD(1)),
    day Date COMMENT 'Day of event_time, for failures of created_at (UTC).' CODEC(Delta(2), ZSTD(1)),
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.' CODEC(T64, ZSTD(1)),
    failures UInt64 COMMENT 'Events that were lost for the tables.' CODEC(ZSTD(1)),
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.' CODEC(ZSTD(1)),
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.' CODEC(ZSTD(1)),
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.' CODEC(ZSTD(1)),
    positive UInt64 COMMENT 'Feedback that was positive.' CODEC(ZSTD(1)),
    negative UInt64 COMMENT 'Feedback that was negative.' CODEC(ZSTD(1)),
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.' CODEC(ZSTD(1)),
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.' CODEC(ZSTD(1)),
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.' CODEC(T64),
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.' CODEC(ZSTD(1)),
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.' CODEC(ZSTD(1)),
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.' CODEC(ZSTD(1)),
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.' CODEC(ZSTD(1)),
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)),
    fingerprint Int64 COMMENT 'Sum of hashes of the copies that were counted: tells whether exactly these are in the tables.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(refreshed_at) COMMENT 'The latest count is shown.' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, kind, service, tool)
SETTINGS index_granularity = 256, materialize_ttl_recalculate_only = 1
COMMENT 'Events and failures by day, added up from hours.';

CREATE VIEW IF NOT EXISTS `assay_base_local`.rollup_day_differing ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT kind, project, day
FROM
(
    SELECT kind, project, toDate(hour, 'UTC') AS day, sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_hour FINAL
    GROUP BY kind, project, day
    UNION ALL
    SELECT kind, project, day, -sum(fingerprint) AS difference
    FROM `assay_base_local`.rollup_day FINAL
    GROUP BY kind, project, day
)
GROUP BY kind, project, day
HAVING sum(difference) != 0
COMMENT 'Days of rollup_day in which something else was counted than in rollup_hour. Reads all of both.';

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_day_refresh ON CLUSTER '{cluster}'
REFRESH EVERY 1 MINUTE OFFSET 40 SECOND APPEND TO `assay_base_local`.rollup_day EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_day) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toDate(hour, 'UTC') AS day,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_hour FINAL
    WHERE (kind, project, toDate(hour, 'UTC')) IN
    (
        SELECT kind, project, toDate(hour, 'UTC')
        FROM `assay_base_local`.rollup_hour
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM `assay_base_local`.rollup_day) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, day
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE MATERIALIZED VIEW IF NOT EXISTS `assay_base_local`.rollup_day_repair ON CLUSTER '{cluster}'
REFRESH EVERY 1 HOUR OFFSET 10 MINUTE APPEND TO `assay_base_local`.rollup_day EMPTY
DEFINER = owner SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM `assay_base_local`.rollup_day) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toDate(hour, 'UTC') AS day,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM `assay_base_local`.rollup_hour FINAL
    WHERE (kind, project, toDate(hour, 'UTC')) IN (SELECT kind, project, day FROM `assay_base_local`.rollup_day_differing)
    GROUP BY kind, project, service, tool, day
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE VIEW IF NOT EXISTS `assay_local`.rollup_day ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    day Date COMMENT 'Day of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, day, events, failures, incidents, failure_reasons, without_result, positive,
    negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, created_at, refreshed_at
FROM `assay_base_local`.rollup_day FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by day, added up from hours.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin,
    ADD COLUMN IF NOT EXISTS retrieved_ids Array(String) COMMENT 'Id of every hit in the index of the producer, in result order, if ids are not integers; empty otherwise.' CODEC(ZSTD(1)) AFTER partial,
    ADD COLUMN IF NOT EXISTS passages Array(Tuple(id String, source_id Nullable(String), text String, score Nullable(Float64))) COMMENT 'The texts found, scrubbed, in result order; empty if the producer does not send them. passages.text, passages.id and so on are separate arrays.' CODEC(ZSTD(3)) AFTER retrieved_ids,
    ADD CONSTRAINT IF NOT EXISTS retrieved_ids_items CHECK length(retrieved_ids) <= 10000,
    ADD CONSTRAINT IF NOT EXISTS passages_items CHECK length(passages) <= 10000,
    ADD CONSTRAINT IF NOT EXISTS passage_length CHECK arrayAll(text -> length(text) <= 262144, passages.text);

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE `assay_base_local`.feedback ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE `assay_base_local`.tool_calls ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE `assay_base_local`.server_events ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

ALTER TABLE `assay_base_local`.session_parts ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS user_hash Nullable(String) COMMENT 'The user, as a keyed hash made by the producer; null without one.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS origin Nullable(Enum8('sdk' = 1, 'http' = 2, 'otlp' = 3)) COMMENT 'How the event was sent: by the SDK (sdk), plain HTTP (http) or OpenTelemetry (otlp); null if unknown.' CODEC(ZSTD(1)) AFTER user_hash,
    ADD COLUMN IF NOT EXISTS partial Bool COMMENT 'True if a part of the event was dropped before it reached Assay, such as attributes of a span.' CODEC(ZSTD(1)) AFTER origin;

CREATE OR REPLACE VIEW `assay_local`.candidates ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, tool_name, query, retrieved_slugs, retrieved_chunk_ids, source_ids, expand_enabled,
    detail, detail_resolved, vector_enabled, expansion_applied, latency_ms, remote, job_id, subagent_id,
    created_at, event_id, event_time, project, service, occurred_at, traceparent, retrieved_scores,
    embedding_model, params, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, retrieved_ids, passages, stored_at
FROM `assay_base_local`.candidates FINAL
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE OR REPLACE VIEW `assay_local`.answers ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, query, answer, contexts, citations, model, latency_ms, retrieval_event_id, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM `assay_base_local`.answers FINAL
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE OR REPLACE VIEW `assay_local`.feedback ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, target_event_id, verdict, text, user_hash, created_at, event_id, event_time, project,
    service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    origin, partial, stored_at
FROM `assay_base_local`.feedback FINAL
COMMENT 'Verdicts of people on earlier events.';

CREATE OR REPLACE VIEW `assay_local`.tool_calls ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'tool_call' AS kind, tool_name, args_summary, status,
    error_kind, duration_ms, result_summary, CAST(NULL, 'Nullable(String)') AS event_subtype,
    CAST(NULL, 'Nullable(String)') AS message, call_id, agent_name, parent_call_id, exit_code, seq, created_at,
    event_id, event_time, project, service, occurred_at, traceparent, pii_families, policy, pii_attempted,
    pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM `assay_base_local`.tool_calls FINAL
COMMENT 'Captured tool calls: what was called with which arguments, and how it ended.';

CREATE OR REPLACE VIEW `assay_local`.server_events ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, timestamp, server_session_id, 'server_event' AS kind,
    CAST(NULL, 'Nullable(String)') AS tool_name, args_summary, CAST(NULL, 'Nullable(String)') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS duration_ms, result_summary,
    event_subtype, message, call_id, agent_name, parent_call_id, exit_code, seq, created_at, event_id, event_time,
    project, service, occurred_at, traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM `assay_base_local`.server_events FINAL
COMMENT 'Events of the servers that run tools: starts, stops and mismatches.';

CREATE OR REPLACE VIEW `assay_local`.session_parts ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, id, revision, digest, part, parts, title, created, updated, source, source_version, status,
    parent_session_id, forked_from, model, turns, tools, tool_errors, cost_usd, input_tokens, output_tokens, request,
    response, intermediate_events, metadata, created_at, event_id, event_time, project, service, occurred_at,
    traceparent, pii_families, policy, pii_attempted, pii_blocked, session_id,
    user_hash, origin, partial, stored_at
FROM `assay_base_local`.session_parts FINAL
COMMENT 'Sessions of agents, in parts. The view sessions shows one row for each session.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_source ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
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
    FROM `assay_base_local`.candidates AS t FINAL
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
    FROM `assay_base_local`.answers AS t FINAL
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
    FROM `assay_base_local`.feedback AS t FINAL
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
    FROM `assay_base_local`.capture_failures AS t FINAL
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
    FROM `assay_base_local`.tool_calls AS t FINAL
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
    FROM `assay_base_local`.server_events AS t FINAL
    GROUP BY project, service, tool, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    label_id UUID COMMENT 'Idempotency key of the label.' CODEC(ZSTD(1)),
    event_id UUID COMMENT 'The answer that was labelled.' CODEC(ZSTD(1)),
    event_time DateTime64(3, 'UTC') MATERIALIZED UUIDv7ToDateTime(event_id, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.' CODEC(Delta(8), ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the answer (UTC, milliseconds), as in its row. Retention counts from here, so that a label goes with its answer.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    queue LowCardinality(String) COMMENT 'Name of the sample that was labelled.' CODEC(ZSTD(1)),
    label Enum8('good' = 1, 'bad' = 2, 'unsure' = 3) COMMENT 'Verdict of the labeller. The set is closed.' CODEC(ZSTD(1)),
    labeller String COMMENT 'Name of the person who labelled.' CODEC(ZSTD(1)),
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.' CODEC(ZSTD(3)),
    supersedes Nullable(UUID) COMMENT 'The label_id that this label replaces or withdraws; null for a first label.' CODEC(ZSTD(1)),
    withdrawn Bool COMMENT 'True if this row takes the label that it supersedes back.' CODEC(ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.' CODEC(Delta(8), ZSTD(1)),
    INDEX event_id_bloom event_id TYPE bloom_filter(0.01) GRANULARITY 1,
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT event_id_is_uuidv7 CHECK bitAnd(bitShiftRight(toUInt128(event_id), 76), 15) = 7,
    CONSTRAINT event_id_at_most_a_day_ahead CHECK event_time <= created_at + toIntervalDay(1),
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT queue_is_a_name CHECK match(queue, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT labeller_length CHECK lengthUTF8(labeller) BETWEEN 1 AND 128,
    CONSTRAINT note_length CHECK lengthUTF8(note) <= 2000,
    CONSTRAINT withdrawn_supersedes CHECK NOT withdrawn OR isNotNull(supersedes)
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
PARTITION BY toYYYYMM(event_time)
ORDER BY (project, event_time, event_id, queue, labeller)
SETTINGS replicated_deduplication_window = 0
COMMENT 'Labels of people on answers: every label that was given, changed or withdrawn.';

CREATE VIEW IF NOT EXISTS `assay_local`.labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    event_id UUID COMMENT 'The answer that was labelled.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the answer (UTC, milliseconds), as in its row. Retention counts from here, so that a label goes with its answer.',
    project LowCardinality(String) COMMENT 'The tenant.',
    queue LowCardinality(String) COMMENT 'Name of the sample that was labelled.',
    label Enum8('good' = 1, 'bad' = 2, 'unsure' = 3) COMMENT 'Verdict of the labeller. The set is closed.',
    labeller String COMMENT 'Name of the person who labelled.',
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).',
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.',
    supersedes Nullable(UUID) COMMENT 'The label_id that this label replaces or withdraws; null for a first label.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, label_id, event_id, event_time, created_at, project, queue, label, labeller, labelled_at, note, supersedes, stored_at
FROM
(
    SELECT *
    FROM
    (
        SELECT
            schema_version, label_id, event_id, event_time, created_at, project, queue, label, labeller, labelled_at, note, supersedes,
            withdrawn, stored_at
        FROM `assay_base_local`.labels
        ORDER BY stored_at
        LIMIT 1 BY label_id
    )
    ORDER BY stored_at DESC, label_id DESC
    LIMIT 1 BY project, queue, event_id, labeller
)
WHERE NOT withdrawn
COMMENT 'Labels of people on answers: the latest of each labeller for each answer and queue, without withdrawn ones.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.dataset_cases ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant whose traffic the case came from.' CODEC(ZSTD(1)),
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset, unique within the project.' CODEC(ZSTD(1)),
    case_id String COMMENT 'The case, unique within the dataset.' CODEC(ZSTD(1)),
    version UInt64 COMMENT 'Version of the case, from 1.' CODEC(ZSTD(1)),
    event_id Nullable(UUID) COMMENT 'The retrieval that the case came from; null without one.' CODEC(ZSTD(1)),
    query String COMMENT 'The query, as captured: scrubbed. At most 51,200 characters.' CODEC(ZSTD(3)),
    expected_slugs Array(String) COMMENT 'Slugs of the documents that answer the query.' CODEC(ZSTD(1)),
    expected_chunk_ids Array(Int64) COMMENT 'Ids of the chunks that answer the query.' CODEC(ZSTD(1)),
    null_case Bool COMMENT 'True if no document answers the query, so that nothing should be found.' CODEC(ZSTD(1)),
    expected_answer Nullable(String) COMMENT 'The answer that is right, scrubbed; null without one. At most 51,200 characters.' CODEC(ZSTD(3)),
    inclusion_probability Float64 COMMENT 'Probability that this query was chosen from the traffic; use its inverse as the weight in totals.' CODEC(ZSTD(1)),
    reviewer String COMMENT 'Name of the person who reviewed this version.' CODEC(ZSTD(1)),
    at DateTime64(6, 'UTC') COMMENT 'When it was reviewed (clock of the host, UTC, microseconds).' CODEC(ZSTD(1)),
    retired Bool COMMENT 'True if this version takes the case out of the dataset.' CODEC(ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.' CODEC(ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT dataset_is_a_name CHECK match(dataset, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT case_id_length CHECK lengthUTF8(case_id) BETWEEN 1 AND 512,
    CONSTRAINT versions_start_at_1 CHECK version >= 1,
    CONSTRAINT query_length CHECK lengthUTF8(query) BETWEEN 1 AND 51200,
    CONSTRAINT expected_answer_length CHECK lengthUTF8(ifNull(expected_answer, '')) <= 51200,
    CONSTRAINT expected_items CHECK length(expected_slugs) <= 10000 AND length(expected_chunk_ids) <= 10000,
    CONSTRAINT null_cases_expect_nothing CHECK NOT null_case OR (empty(expected_slugs) AND empty(expected_chunk_ids)),
    CONSTRAINT inclusion_probability_is_a_probability CHECK inclusion_probability > 0 AND inclusion_probability <= 1,
    CONSTRAINT reviewer_length CHECK lengthUTF8(reviewer) BETWEEN 1 AND 128
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (project, dataset, case_id, version)
SETTINGS replicated_deduplication_window = 0
COMMENT 'Cases of golden datasets, reviewed by people: every version of each case. Retention leaves them.';

CREATE VIEW IF NOT EXISTS `assay_local`.dataset_case_versions ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    project LowCardinality(String) COMMENT 'The tenant whose traffic the case came from.',
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset, unique within the project.',
    case_id String COMMENT 'The case, unique within the dataset.',
    version UInt64 COMMENT 'Version of the case, from 1.',
    event_id Nullable(UUID) COMMENT 'The retrieval that the case came from; null without one.',
    query String COMMENT 'The query, as captured: scrubbed. At most 51,200 characters.',
    expected_slugs Array(String) COMMENT 'Slugs of the documents that answer the query.',
    expected_chunk_ids Array(Int64) COMMENT 'Ids of the chunks that answer the query.',
    null_case Bool COMMENT 'True if no document answers the query, so that nothing should be found.',
    expected_answer Nullable(String) COMMENT 'The answer that is right, scrubbed; null without one. At most 51,200 characters.',
    inclusion_probability Float64 COMMENT 'Probability that this query was chosen from the traffic; use its inverse as the weight in totals.',
    reviewer String COMMENT 'Name of the person who reviewed this version.',
    at DateTime64(6, 'UTC') COMMENT 'When it was reviewed (clock of the host, UTC, microseconds).',
    retired Bool COMMENT 'True if this version takes the case out of the dataset.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, project, dataset, case_id, version, event_id, query, expected_slugs, expected_chunk_ids, null_case, expected_answer,
    inclusion_probability, reviewer, at, retired, stored_at
FROM `assay_base_local`.dataset_cases
ORDER BY stored_at
LIMIT 1 BY project, dataset, case_id, version
COMMENT 'Cases of golden datasets: every version of each case, retired ones too.';

CREATE VIEW IF NOT EXISTS `assay_local`.dataset_cases ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    project LowCardinality(String) COMMENT 'The tenant whose traffic the case came from.',
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset, unique within the project.',
    case_id String COMMENT 'The case, unique within the dataset.',
    version UInt64 COMMENT 'Version of the case, from 1.',
    event_id Nullable(UUID) COMMENT 'The retrieval that the case came from; null without one.',
    query String COMMENT 'The query, as captured: scrubbed. At most 51,200 characters.',
    expected_slugs Array(String) COMMENT 'Slugs of the documents that answer the query.',
    expected_chunk_ids Array(Int64) COMMENT 'Ids of the chunks that answer the query.',
    null_case Bool COMMENT 'True if no document answers the query, so that nothing should be found.',
    expected_answer Nullable(String) COMMENT 'The answer that is right, scrubbed; null without one. At most 51,200 characters.',
    inclusion_probability Float64 COMMENT 'Probability that this query was chosen from the traffic; use its inverse as the weight in totals.',
    reviewer String COMMENT 'Name of the person who reviewed this version.',
    at DateTime64(6, 'UTC') COMMENT 'When it was reviewed (clock of the host, UTC, microseconds).',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, project, dataset, case_id, version, event_id, query, expected_slugs, expected_chunk_ids, null_case, expected_answer,
    inclusion_probability, reviewer, at, stored_at
FROM
(
    SELECT
        schema_version, project, dataset, case_id, version, event_id, query, expected_slugs, expected_chunk_ids, null_case,
        expected_answer, inclusion_probability, reviewer, at, retired, stored_at
    FROM `assay_base_local`.dataset_cases
    ORDER BY version DESC, stored_at
    LIMIT 1 BY project, dataset, case_id
)
WHERE NOT retired
COMMENT 'Cases of golden datasets: the latest version of each case, without retired ones.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}'
    ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS question_bloom cityHash64(lowerUTF8(trimBoth(replaceRegexpAll(query, '[[:space:]]+', ' ')))) TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}'
    ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS question_bloom cityHash64(lowerUTF8(trimBoth(replaceRegexpAll(query, '[[:space:]]+', ' ')))) TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE `assay_base_local`.tool_calls ON CLUSTER '{cluster}' ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE `assay_base_local`.server_events ON CLUSTER '{cluster}' ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1;

CREATE TABLE IF NOT EXISTS `assay_base_local`.audit_rows ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.' CODEC(ZSTD(1)),
    leaf_index UInt64 COMMENT 'Place in the log, from 0.' CODEC(Delta(8), ZSTD(1)),
    kind LowCardinality(String) COMMENT 'What the row is about: tool_call, server_event, lost or operation.' CODEC(ZSTD(1)),
    source_id UUID COMMENT 'The event_id; the failure_id of what was lost; an id made of operation_id and outcome.' CODEC(ZSTD(1)),
    created_at DateTime64(6, 'UTC') COMMENT 'When the log received the event, or the failure or record was made (UTC, microseconds). Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer; assay for an operation.' CODEC(ZSTD(1)),
    server_session_id Nullable(String) COMMENT 'One run of the server; null if unknown.' CODEC(ZSTD(1)),
    duration_us Nullable(UInt64) COMMENT 'Wall-clock time of the call, in microseconds.' CODEC(ZSTD(1)),
    error_kind LowCardinality(Nullable(String)) COMMENT 'Kind of error or refusal; the reason of a loss.' CODEC(ZSTD(1)),
    pii_attempted Array(LowCardinality(String)) COMMENT 'Categories of personal data that were found.' CODEC(ZSTD(1)),
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out or made the policy refuse.' CODEC(ZSTD(1)),
    late Bool COMMENT 'True if it was stored after the log had passed its place: written at the end then.' CODEC(ZSTD(1)),
    place UInt64 COMMENT 'Place of the source among those of its kind: the id of an event, otherwise Unix microseconds of its stored_at.' CODEC(ZSTD(1)),
    id UInt64 COMMENT 'Number of the row in the log, from 1.' CODEC(Delta(8), ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    source_connection_id LowCardinality(String) COMMENT 'The same as service.' CODEC(ZSTD(1)),
    caller_id Nullable(String) COMMENT 'Salted digest of the agent or person; null without one. The disclosure has the name.' CODEC(ZSTD(1)),
    tool_name LowCardinality(String) COMMENT 'The tool called; the subtype of a server event; the service that lost an event; the operation.' CODEC(ZSTD(1)),
    status LowCardinality(String) COMMENT 'Result of a call: success, empty, partial, degraded, error, refused; lost; or the outcome of an operation.' CODEC(ZSTD(1)),
    refusal_reason LowCardinality(Nullable(String)) COMMENT 'Why a call was refused, if it is one of six known reasons.' CODEC(ZSTD(1)),
    cost_class LowCardinality(String) COMMENT 'refused for a refused call, otherwise small.' CODEC(ZSTD(1)),
    pii_categories LowCardinality(String) COMMENT 'The attempted categories, sorted, separated by commas.' CODEC(ZSTD(1)),
    ast_shape_hash Nullable(String) COMMENT 'Always null.' CODEC(ZSTD(1)),
    rule_id Nullable(String) COMMENT 'Always null.' CODEC(ZSTD(1)),
    fingerprint String COMMENT 'SHA-256 of categories, cost class and reason, in hex.' CODEC(ZSTD(1)),
    fingerprint_version LowCardinality(String) COMMENT 'Always fp-v1.' CODEC(ZSTD(1)),
    chain_hash String COMMENT 'SHA-256 of the previous chain_hash and the thirteen columns from id to fingerprint_version, in hex.' CODEC(ZSTD(1)),
    sd Array(String) COMMENT 'Salted digests of the fields that may be personal, sorted (RFC 9901).' CODEC(ZSTD(1)),
    leaf_hash String COMMENT 'RFC 6962 hash of the canonical row, in hex.' CODEC(ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    INDEX source_id_bloom source_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX occurred_at_range occurred_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (log, leaf_index, leaf_hash)
SETTINGS replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Rows of the audit log.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.audit_leaves ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.' CODEC(ZSTD(1)),
    leaf_index UInt64 COMMENT 'Place in the log, from 0.' CODEC(Delta(8), ZSTD(1)),
    leaf_hash String COMMENT 'RFC 6962 hash of the canonical row, in hex.' CODEC(ZSTD(1)),
    chain_hash String COMMENT 'The chain_hash of the row, in hex, so that the chain can be continued after the row has expired.' CODEC(ZSTD(1)),
    kind LowCardinality(String) COMMENT 'What the row is about: tool_call, server_event, lost or operation.' CODEC(ZSTD(1)),
    source_id UUID COMMENT 'What the row is about: see audit_rows.' CODEC(ZSTD(1)),
    place UInt64 COMMENT 'The place of the row.' CODEC(ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the leaf was written (clock of the store, UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    INDEX source_id_bloom source_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (log, leaf_index, leaf_hash)
SETTINGS replicated_deduplication_window = 0
COMMENT 'Leaf hashes of the audit log.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.audit_disclosures ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.' CODEC(ZSTD(1)),
    leaf_index UInt64 COMMENT 'Place of the row in the log, from 0.' CODEC(Delta(8), ZSTD(1)),
    digest String COMMENT 'Its digest, which the row has in sd.' CODEC(ZSTD(1)),
    disclosure String COMMENT 'base64url of the JSON array of salt, name and value (RFC 9901).' CODEC(ZSTD(3)),
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.' CODEC(ZSTD(1)),
    created_at DateTime64(6, 'UTC') COMMENT 'The created_at of the row. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).' CODEC(Delta(8), ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (log, leaf_index, digest)
SETTINGS replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Values and salts of the fields that may be personal. A deleted one leaves every proof intact.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.audit_checkpoints ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.' CODEC(ZSTD(1)),
    size UInt64 COMMENT 'Number of leaves.' CODEC(ZSTD(1)),
    root String COMMENT 'Root of the tree, in hex.' CODEC(ZSTD(1)),
    note String COMMENT 'The signed checkpoint (c2sp.org/tlog-checkpoint).' CODEC(ZSTD(3)),
    edge Array(String) COMMENT 'Roots of the complete subtrees from left to right, in hex: a tree continues from them.' CODEC(ZSTD(1)),
    places Map(String, UInt64) COMMENT 'Greatest place of each kind of source in these leaves, events as one: the auditor continues from them.' CODEC(ZSTD(1)),
    rotation String COMMENT 'If the key was replaced here, the statement that both keys signed; otherwise empty.' CODEC(ZSTD(3)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (log, size, root, note)
SETTINGS replicated_deduplication_window = 0
COMMENT 'Signed checkpoints of the audit log.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.audit_anchors ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.' CODEC(ZSTD(1)),
    size UInt64 COMMENT 'Number of leaves of the checkpoint.' CODEC(ZSTD(1)),
    anchor LowCardinality(String) COMMENT 'Who has it: the name of a witness, the host of a time-stamp server, a directory.' CODEC(ZSTD(1)),
    kind LowCardinality(String) COMMENT 'witness, timestamp or directory.' CODEC(ZSTD(1)),
    note String COMMENT 'The signed checkpoint; of a witness, with its cosignature (c2sp.org/tlog-cosignature).' CODEC(ZSTD(3)),
    token String COMMENT 'The response of a time-stamp server (RFC 3161) in base64; otherwise empty.' CODEC(ZSTD(3)),
    anchored_at DateTime64(6, 'UTC') COMMENT 'When: of a witness or a time-stamp server, by its own clock (UTC).' CODEC(ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).' CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (log, size, anchor, note, token)
SETTINGS replicated_deduplication_window = 0
COMMENT 'Checkpoints of the audit log that others have, with what they signed.';

CREATE VIEW IF NOT EXISTS `assay_local`.audit_rows ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place in the log, from 0.',
    kind LowCardinality(String) COMMENT 'What the row is about: tool_call, server_event, lost or operation.',
    source_id UUID COMMENT 'The event_id; the failure_id of what was lost; an id made of operation_id and outcome.',
    created_at DateTime64(6, 'UTC') COMMENT 'When the log received the event, or the failure or record was made (UTC, microseconds). Retention counts from here.',
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer; assay for an operation.',
    server_session_id Nullable(String) COMMENT 'One run of the server; null if unknown.',
    duration_us Nullable(UInt64) COMMENT 'Wall-clock time of the call, in microseconds.',
    error_kind LowCardinality(Nullable(String)) COMMENT 'Kind of error or refusal; the reason of a loss.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'Categories of personal data that were found.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out or made the policy refuse.',
    late Bool COMMENT 'True if it was stored after the log had passed its place: written at the end then.',
    place UInt64 COMMENT 'Place of the source among those of its kind: the id of an event, otherwise Unix microseconds of its stored_at.',
    id UInt64 COMMENT 'Number of the row in the log, from 1.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    source_connection_id LowCardinality(String) COMMENT 'The same as service.',
    caller_id Nullable(String) COMMENT 'Salted digest of the agent or person; null without one. The disclosure has the name.',
    tool_name LowCardinality(String) COMMENT 'The tool called; the subtype of a server event; the service that lost an event; the operation.',
    status LowCardinality(String) COMMENT 'Result of a call: success, empty, partial, degraded, error, refused; lost; or the outcome of an operation.',
    refusal_reason LowCardinality(Nullable(String)) COMMENT 'Why a call was refused, if it is one of six known reasons.',
    cost_class LowCardinality(String) COMMENT 'refused for a refused call, otherwise small.',
    pii_categories LowCardinality(String) COMMENT 'The attempted categories, sorted, separated by commas.',
    ast_shape_hash Nullable(String) COMMENT 'Always null.',
    rule_id Nullable(String) COMMENT 'Always null.',
    fingerprint String COMMENT 'SHA-256 of categories, cost class and reason, in hex.',
    fingerprint_version LowCardinality(String) COMMENT 'Always fp-v1.',
    chain_hash String COMMENT 'SHA-256 of the previous chain_hash and the thirteen columns from id to fingerprint_version, in hex.',
    sd Array(String) COMMENT 'Salted digests of the fields that may be personal, sorted (RFC 9901).',
    leaf_hash String COMMENT 'RFC 6962 hash of the canonical row, in hex.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    log, leaf_index, kind, source_id, created_at, project, service, server_session_id, duration_us, error_kind,
    pii_attempted, pii_blocked, late, place, id, occurred_at, source_connection_id, caller_id, tool_name, status,
    refusal_reason, cost_class, pii_categories, ast_shape_hash, rule_id, fingerprint, fingerprint_version, chain_hash,
    sd, leaf_hash, stored_at
FROM `assay_base_local`.audit_rows
COMMENT 'Rows of the audit log: who called which tool, what was refused, what was lost, what people changed. A row that was written twice may appear twice.';

CREATE VIEW IF NOT EXISTS `assay_local`.audit_leaves ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place in the log, from 0.',
    leaf_hash String COMMENT 'RFC 6962 hash of the canonical row, in hex.',
    chain_hash String COMMENT 'The chain_hash of the row, in hex, so that the chain can be continued after the row has expired.',
    kind LowCardinality(String) COMMENT 'What the row is about: tool_call, server_event, lost or operation.',
    source_id UUID COMMENT 'What the row is about: see audit_rows.',
    place UInt64 COMMENT 'The place of the row.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the leaf was written (clock of the store, UTC, microseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    log, leaf_index, leaf_hash, chain_hash, kind, source_id, place, stored_at
FROM `assay_base_local`.audit_leaves
COMMENT 'Leaf hashes of the audit log. They are never deleted.';

CREATE VIEW IF NOT EXISTS `assay_local`.audit_disclosures ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place of the row in the log, from 0.',
    digest String COMMENT 'Its digest, which the row has in sd.',
    disclosure String COMMENT 'base64url of the JSON array of salt, name and value (RFC 9901).',
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.',
    created_at DateTime64(6, 'UTC') COMMENT 'The created_at of the row. Retention counts from here.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    log, leaf_index, digest, disclosure, project, created_at, stored_at
FROM `assay_base_local`.audit_disclosures
COMMENT 'Values of personal fields of the audit log, with their salts, as far as they are not erased.';

CREATE VIEW IF NOT EXISTS `assay_local`.audit_checkpoints ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    size UInt64 COMMENT 'Number of leaves.',
    root String COMMENT 'Root of the tree, in hex.',
    note String COMMENT 'The signed checkpoint (c2sp.org/tlog-checkpoint).',
    edge Array(String) COMMENT 'Roots of the complete subtrees from left to right, in hex: a tree continues from them.',
    places Map(String, UInt64) COMMENT 'Greatest place of each kind of source in these leaves, events as one: the auditor continues from them.',
    rotation String COMMENT 'If the key was replaced here, the statement that both keys signed; otherwise empty.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    log, size, root, note, edge, places, rotation, stored_at
FROM `assay_base_local`.audit_checkpoints
COMMENT 'Signed checkpoints of the audit log.';

CREATE VIEW IF NOT EXISTS `assay_local`.audit_anchors ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    size UInt64 COMMENT 'Number of leaves of the checkpoint.',
    anchor LowCardinality(String) COMMENT 'Who has it: the name of a witness, the host of a time-stamp server, a directory.',
    kind LowCardinality(String) COMMENT 'witness, timestamp or directory.',
    note String COMMENT 'The signed checkpoint; of a witness, with its cosignature (c2sp.org/tlog-cosignature).',
    token String COMMENT 'The response of a time-stamp server (RFC 3161) in base64; otherwise empty.',
    anchored_at DateTime64(6, 'UTC') COMMENT 'When: of a witness or a time-stamp server, by its own clock (UTC).',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    log, size, anchor, kind, note, token, anchored_at, stored_at
FROM `assay_base_local`.audit_anchors
COMMENT 'Checkpoints of the audit log that others have, with what they signed.';

CREATE VIEW IF NOT EXISTS `assay_local`.events ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    'retrieval' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    toString(e.tool_name) AS tool, ifNull(toString(e.embedding_model), '') AS model, e.query AS text,
    if(empty(e.retrieved_chunk_ids) AND empty(e.retrieved_ids) AND empty(e.passages.id), 'no_result', 'found') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, toNullable(e.latency_ms) AS latency_ms,
    toNullable(toUInt64(greatest(length(e.retrieved_chunk_ids), length(e.retrieved_ids), length(e.passages.id)))) AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM `assay_base_local`.candidates AS e FINAL
UNION ALL
SELECT
    'answer' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    '' AS tool, toString(e.model) AS model, e.query AS text, if(empty(e.citations), 'uncited', 'cited') AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, toNullable(e.latency_ms) AS latency_ms,
    toNullable(toUInt64(length(e.contexts))) AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM `assay_base_local`.answers AS e FINAL
UNION ALL
SELECT
    'feedback' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    '' AS tool, '' AS model, ifNull(e.text, '') AS text, toString(e.verdict) AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS latency_ms,
    CAST(NULL, 'Nullable(UInt64)') AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM `assay_base_local`.feedback AS e FINAL
UNION ALL
SELECT
    'tool_call' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    toString(e.tool_name) AS tool, '' AS model, ifNull(e.args_summary, '') AS text, toString(e.status) AS status,
    CAST(e.error_kind, 'Nullable(String)') AS error_kind, toNullable(e.duration_ms) AS latency_ms,
    CAST(NULL, 'Nullable(UInt64)') AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM `assay_base_local`.tool_calls AS e FINAL
UNION ALL
SELECT
    'server_event' AS kind, e.event_id AS event_id, e.event_time AS event_time, e.project AS project, e.service AS service,
    '' AS tool, '' AS model, e.message AS text, toString(e.event_subtype) AS status,
    CAST(NULL, 'Nullable(String)') AS error_kind, CAST(NULL, 'Nullable(Float64)') AS latency_ms,
    CAST(NULL, 'Nullable(UInt64)') AS results,
    e.pii_families AS pii_families, e.traceparent AS traceparent, e.session_id AS session_id, e.occurred_at AS occurred_at,
    e.created_at AS created_at
FROM `assay_base_local`.server_events AS e FINAL
COMMENT 'Every captured event of each kind, with the columns that all kinds have.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.contradiction_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    completed_at DateTime64(3, 'UTC') COMMENT 'When it ended (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    status Enum8('completed' = 1, 'partial' = 2, 'judge_failed' = 3) COMMENT 'completed: every pair was tried; partial: the budget or the API ended it; judge_failed: no pair was judged, so there is no rate. The set is closed.' CODEC(ZSTD(1)),
    prompt LowCardinality(String) COMMENT 'Version of prompt and rules, with their hash. Another one starts another series.' CODEC(ZSTD(1)),
    model LowCardinality(String) COMMENT 'Model of the judge, with its fingerprint. Another one starts another series.' CODEC(ZSTD(1)),
    sampling String COMMENT 'How pairs were drawn: documents of a question, pairs of a question, characters of a text. Another one starts another series.' CODEC(ZSTD(1)),
    scope String COMMENT 'Where questions and documents came from. Another one starts another series.' CODEC(ZSTD(1)),
    queries UInt64 COMMENT 'Questions with a pair of documents.' CODEC(ZSTD(1)),
    intended UInt64 COMMENT 'Pairs that were to be judged.' CODEC(ZSTD(1)),
    judged UInt64 COMMENT 'Pairs that were judged, uncertain ones included.' CODEC(ZSTD(1)),
    judge_errors UInt64 COMMENT 'Pairs that were tried without a verdict.' CODEC(ZSTD(1)),
    contradictions UInt64 COMMENT 'Pairs that are strict contradictions.' CODEC(ZSTD(1)),
    rate Nullable(Float64) COMMENT 'Share of contradictions among the judged pairs, weighted by the inverse of their inclusion probability; null without any.' CODEC(ZSTD(1)),
    rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.' CODEC(ZSTD(1)),
    rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.' CODEC(ZSTD(1)),
    query_rate Nullable(Float64) COMMENT 'Share of questions with at least one contradiction, of those with judged pairs; null without any.' CODEC(ZSTD(1)),
    query_rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.' CODEC(ZSTD(1)),
    query_rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.' CODEC(ZSTD(1)),
    cost_usd Float64 COMMENT 'Actual cost in US dollars; a failed call that may have been billed counts with its upper bound.' CODEC(ZSTD(1)),
    summary String COMMENT 'The report without texts: a JSON object as text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') MATERIALIZED started_at COMMENT 'started_at. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for a later stored_at: of several copies the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT summary_length CHECK length(summary) <= 1048576
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (project, run_id)
SETTINGS replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Runs that judged pairs of retrieved documents for contradictions: one row each.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.contradiction_pairs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    result_id UUID COMMENT 'This pair in this run.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event with the documents; started_at without one. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    place UInt64 COMMENT 'Place of the pair in the random order of the run, from 0.' CODEC(ZSTD(1)),
    pair_id String COMMENT 'Question, documents and texts, hashed: the same in each run that judges them unchanged.' CODEC(ZSTD(1)),
    pair_key String COMMENT 'Question and documents, hashed: the same after a text changed.' CODEC(ZSTD(1)),
    query String COMMENT 'The question, scrubbed.' CODEC(ZSTD(3)),
    documents Array(String) COMMENT 'Ids of the two documents.' CODEC(ZSTD(1)),
    texts Array(String) COMMENT 'Their texts as the judge received them, scrubbed.' CODEC(ZSTD(3)),
    stratum LowCardinality(String) COMMENT 'numbers: alike with different numbers or dates; terms: alike; rest.' CODEC(ZSTD(1)),
    probability Float64 COMMENT 'Probability that the pair is in the sample of the pairs of its question; use its inverse as the weight.' CODEC(ZSTD(1)),
    verdict Nullable(Enum8('no_contradiction' = 1, 'contradiction' = 2, 'temporal_supersession' = 3, 'temporal_regression' = 4, 'temporal_evolution' = 5, 'negation_artifact' = 6, 'uncertain' = 7)) COMMENT 'Verdict of both orders; uncertain if they differ; null if the pair was not judged. The set is closed.' CODEC(ZSTD(1)),
    severity Enum8('info' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Severity of the finding; info without one.' CODEC(ZSTD(1)),
    confidence Nullable(Float64) COMMENT 'The lower confidence of both orders; null if the pair was not judged.' CODEC(ZSTD(1)),
    claims Array(String) COMMENT 'The two claims, word for word from the texts; empty without a finding.' CODEC(ZSTD(3)),
    reason String COMMENT 'Reason of the judge; empty without one.' CODEC(ZSTD(3)),
    judge_error LowCardinality(String) COMMENT 'Kind of error if the pair was tried without a verdict; empty otherwise.' CODEC(ZSTD(1)),
    finding_id String COMMENT 'Identity of the finding: its two claims, hashed; empty without one.' CODEC(ZSTD(1)),
    state LowCardinality(String) COMMENT 'State of the finding in this run: new, persisting or reopened; empty without one.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for a later stored_at: of several copies the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT query_length CHECK lengthUTF8(query) <= 51200,
    CONSTRAINT two_documents CHECK length(documents) = 2 AND length(texts) = 2,
    CONSTRAINT claims_of_a_finding CHECK length(claims) IN (0, 2),
    CONSTRAINT probability_is_a_probability CHECK probability > 0 AND probability <= 1
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver)
ORDER BY (project, run_id, pair_id)
SETTINGS replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Pairs of retrieved documents that were to be judged for contradictions: one row for each run and pair.';

CREATE TABLE IF NOT EXISTS `assay_base_local`.contradiction_labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    label_id UUID COMMENT 'Idempotency key of the label.' CODEC(ZSTD(1)),
    result_id UUID COMMENT 'The pair in a run that was labelled.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    pair_id String COMMENT 'The pair, as in its row.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    label Enum8('confirm' = 1, 'refute' = 2) COMMENT 'confirm: the texts contradict each other; refute: they do not. The set is closed.' CODEC(ZSTD(1)),
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict; null for a label outside of the queue.' CODEC(ZSTD(1)),
    labeller String COMMENT 'Name of the person who labelled.' CODEC(ZSTD(1)),
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.' CODEC(ZSTD(3)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT probability_is_a_probability CHECK isNull(probability) OR (probability > 0 AND probability <= 1),
    CONSTRAINT labeller_length CHECK lengthUTF8(labeller) BETWEEN 1 AND 128,
    CONSTRAINT note_length CHECK lengthUTF8(note) <= 2000
)
ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')
ORDER BY (project, run_id, result_id, labeller)
SETTINGS replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Labels of people on pairs of documents: every label that was given or changed.';

CREATE VIEW IF NOT EXISTS `assay_local`.contradiction_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    completed_at DateTime64(3, 'UTC') COMMENT 'When it ended (UTC, milliseconds).',
    status Enum8('completed' = 1, 'partial' = 2, 'judge_failed' = 3) COMMENT 'completed: every pair was tried; partial: the budget or the API ended it; judge_failed: no pair was judged, so there is no rate. The set is closed.',
    prompt LowCardinality(String) COMMENT 'Version of prompt and rules, with their hash. Another one starts another series.',
    model LowCardinality(String) COMMENT 'Model of the judge, with its fingerprint. Another one starts another series.',
    sampling String COMMENT 'How pairs were drawn: documents of a question, pairs of a question, characters of a text. Another one starts another series.',
    scope String COMMENT 'Where questions and documents came from. Another one starts another series.',
    queries UInt64 COMMENT 'Questions with a pair of documents.',
    intended UInt64 COMMENT 'Pairs that were to be judged.',
    judged UInt64 COMMENT 'Pairs that were judged, uncertain ones included.',
    judge_errors UInt64 COMMENT 'Pairs that were tried without a verdict.',
    contradictions UInt64 COMMENT 'Pairs that are strict contradictions.',
    rate Nullable(Float64) COMMENT 'Share of contradictions among the judged pairs, weighted by the inverse of their inclusion probability; null without any.',
    rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    query_rate Nullable(Float64) COMMENT 'Share of questions with at least one contradiction, of those with judged pairs; null without any.',
    query_rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    query_rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    cost_usd Float64 COMMENT 'Actual cost in US dollars; a failed call that may have been billed counts with its upper bound.',
    summary String COMMENT 'The report without texts: a JSON object as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, project, started_at, completed_at, status, prompt, model, sampling, scope, queries, intended, judged,
    judge_errors, contradictions, rate, rate_low, rate_high, query_rate, query_rate_low, query_rate_high, cost_usd, summary, stored_at
FROM `assay_base_local`.contradiction_runs FINAL
COMMENT 'Runs that judged pairs of retrieved documents for contradictions: one row each.';

CREATE VIEW IF NOT EXISTS `assay_local`.contradiction_pairs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    result_id UUID COMMENT 'This pair in this run.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event with the documents; started_at without one. Retention counts from here.',
    place UInt64 COMMENT 'Place of the pair in the random order of the run, from 0.',
    pair_id String COMMENT 'Question, documents and texts, hashed: the same in each run that judges them unchanged.',
    pair_key String COMMENT 'Question and documents, hashed: the same after a text changed.',
    query String COMMENT 'The question, scrubbed.',
    documents Array(String) COMMENT 'Ids of the two documents.',
    texts Array(String) COMMENT 'Their texts as the judge received them, scrubbed.',
    stratum LowCardinality(String) COMMENT 'numbers: alike with different numbers or dates; terms: alike; rest.',
    probability Float64 COMMENT 'Probability that the pair is in the sample of the pairs of its question; use its inverse as the weight.',
    verdict Nullable(Enum8('no_contradiction' = 1, 'contradiction' = 2, 'temporal_supersession' = 3, 'temporal_regression' = 4, 'temporal_evolution' = 5, 'negation_artifact' = 6, 'uncertain' = 7)) COMMENT 'Verdict of both orders; uncertain if they differ; null if the pair was not judged. The set is closed.',
    severity Enum8('info' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Severity of the finding; info without one.',
    confidence Nullable(Float64) COMMENT 'The lower confidence of both orders; null if the pair was not judged.',
    claims Array(String) COMMENT 'The two claims, word for word from the texts; empty without a finding.',
    reason String COMMENT 'Reason of the judge; empty without one.',
    judge_error LowCardinality(String) COMMENT 'Kind of error if the pair was tried without a verdict; empty otherwise.',
    finding_id String COMMENT 'Identity of the finding: its two claims, hashed; empty without one.',
    state LowCardinality(String) COMMENT 'State of the finding in this run: new, persisting or reopened; empty without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, result_id, run_id, project, started_at, created_at, place, pair_id, pair_key, query, documents, texts, stratum,
    probability, verdict, severity, confidence, claims, reason, judge_error, finding_id, state, stored_at
FROM `assay_base_local`.contradiction_pairs FINAL
COMMENT 'Pairs of retrieved documents that were to be judged for contradictions: one row for each run and pair.';

CREATE VIEW IF NOT EXISTS `assay_local`.contradiction_labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    result_id UUID COMMENT 'The pair in a run that was labelled.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    pair_id String COMMENT 'The pair, as in its row.',
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.',
    label Enum8('confirm' = 1, 'refute' = 2) COMMENT 'confirm: the texts contradict each other; refute: they do not. The set is closed.',
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict; null for a label outside of the queue.',
    labeller String COMMENT 'Name of the person who labelled.',
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).',
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, label_id, result_id, run_id, project, pair_id, created_at, label, probability, labeller, labelled_at, note, stored_at
FROM
(
    SELECT
        schema_version, label_id, result_id, run_id, project, pair_id, created_at, label, probability, labeller, labelled_at, note,
        stored_at
    FROM `assay_base_local`.contradiction_labels
    ORDER BY stored_at DESC, label_id DESC
    LIMIT 1 BY project, result_id, labeller, isNull(probability)
)
COMMENT 'Labels of people on pairs of documents: the latest of each labeller for each pair of a run, one in the queue and one outside of it.';

CREATE OR REPLACE VIEW `assay_base_local`.rollup_minute_differing ON CLUSTER '{cluster}'
DEFINER = owner SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, hour
FROM
(
    SELECT kind, project, hour, sum(held) OVER (ORDER BY hour DESC, kind, project ROWS UNBOUNDED PRECEDING) - held AS before
    FROM
    (
        SELECT kind, project, hour, sum(held) AS held
        FROM
        (
            SELECT 'retrieval' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM `assay_base_local`.candidates FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'answer' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM `assay_base_local`.answers FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'feedback' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM `assay_base_local`.feedback FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'tool_call' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM `assay_base_local`.tool_calls FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT 'server_event' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference, count() AS held
            FROM `assay_base_local`.server_events FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT
                'failure' AS kind, project, toStartOfHour(created_at) AS hour,
                sum(reinterpretAsInt64(cityHash64(failure_id, created_at))) AS difference, count() AS held
            FROM `assay_base_local`.capture_failures FINAL
            GROUP BY project, hour
            UNION ALL
            SELECT
                toString(kind) AS kind, project, toStartOfHour(minute) AS hour,
                toInt64(countIf(NOT isFinite(latency_ms_sum + top_score_sum))) - sum(fingerprint) AS difference, toUInt64(0) AS held
            FROM `assay_base_local`.rollup_minute FINAL
            GROUP BY kind, project, hour
        )
        GROUP BY kind, project, hour
        HAVING sum(difference) != 0
    )
)
WHERE before < 500000
COMMENT 'The newest hours of rollup_minute in which something else was counted than the tables hold, with at most about half a million events. Reads all of both.';

ALTER TABLE `assay_base_local`.contradiction_runs ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS pairs_gone Array(String) COMMENT 'Pairs, by pair_key, with an open finding whose question was asked again in this run and no longer retrieved both documents.' CODEC(ZSTD(1)) AFTER summary;

ALTER TABLE `assay_base_local`.contradiction_pairs ON CLUSTER '{cluster}'
    ADD COLUMN IF NOT EXISTS query_key String DEFAULT lower(substring(hex(SHA256(query)), 1, 32)) COMMENT 'Question, hashed: the same for each pair of it.' CODEC(ZSTD(1)) AFTER pair_key;

ALTER TABLE `assay_base_local`.contradiction_labels ON CLUSTER '{cluster}'
    MODIFY COLUMN label Enum8('confirm' = 1, 'refute' = 2, 'skip' = 3) COMMENT 'confirm: the texts contradict each other; refute: they do not; skip: the labeller did not decide, so it does not count as one. The set is closed.' CODEC(ZSTD(1));

ALTER TABLE `assay_base_local`.contradiction_labels ON CLUSTER '{cluster}' COMMENT COLUMN IF EXISTS probability 'Probability with which the queue drew the pair among those with its verdict, or among those with an error; null for a label outside of the queue.';

CREATE OR REPLACE VIEW `assay_local`.contradiction_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    completed_at DateTime64(3, 'UTC') COMMENT 'When it ended (UTC, milliseconds).',
    status Enum8('completed' = 1, 'partial' = 2, 'judge_failed' = 3) COMMENT 'completed: every pair was tried; partial: the budget or the API ended it; judge_failed: no pair was judged, so there is no rate. The set is closed.',
    prompt LowCardinality(String) COMMENT 'Version of prompt and rules, with their hash. Another one starts another series.',
    model LowCardinality(String) COMMENT 'Model of the judge, with its fingerprint. Another one starts another series.',
    sampling String COMMENT 'How pairs were drawn: documents of a question, pairs of a question, characters of a text. Another one starts another series.',
    scope String COMMENT 'Where questions and documents came from. Another one starts another series.',
    queries UInt64 COMMENT 'Questions with a pair of documents.',
    intended UInt64 COMMENT 'Pairs that were to be judged.',
    judged UInt64 COMMENT 'Pairs that were judged, uncertain ones included.',
    judge_errors UInt64 COMMENT 'Pairs that were tried without a verdict.',
    contradictions UInt64 COMMENT 'Pairs that are strict contradictions.',
    rate Nullable(Float64) COMMENT 'Share of contradictions among the judged pairs, weighted by the inverse of their inclusion probability; null without any.',
    rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    query_rate Nullable(Float64) COMMENT 'Share of questions with at least one contradiction, of those with judged pairs; null without any.',
    query_rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    query_rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    cost_usd Float64 COMMENT 'Actual cost in US dollars; a failed call that may have been billed counts with its upper bound.',
    summary String COMMENT 'The report without texts: a JSON object as text.',
    pairs_gone Array(String) COMMENT 'Pairs, by pair_key, with an open finding whose question was asked again in this run and no longer retrieved both documents.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, project, started_at, completed_at, status, prompt, model, sampling, scope, queries, intended, judged,
    judge_errors, contradictions, rate, rate_low, rate_high, query_rate, query_rate_low, query_rate_high, cost_usd, summary, pairs_gone,
    stored_at
FROM `assay_base_local`.contradiction_runs FINAL
COMMENT 'Runs that judged pairs of retrieved documents for contradictions: one row each.';

CREATE OR REPLACE VIEW `assay_local`.contradiction_pairs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    result_id UUID COMMENT 'This pair in this run.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event with the documents; started_at without one. Retention counts from here.',
    place UInt64 COMMENT 'Place of the pair in the random order of the run, from 0.',
    pair_id String COMMENT 'Question, documents and texts, hashed: the same in each run that judges them unchanged.',
    pair_key String COMMENT 'Question and documents, hashed: the same after a text changed.',
    query_key String COMMENT 'Question, hashed: the same for each pair of it.',
    query String COMMENT 'The question, scrubbed.',
    documents Array(String) COMMENT 'Ids of the two documents.',
    texts Array(String) COMMENT 'Their texts as the judge received them, scrubbed.',
    stratum LowCardinality(String) COMMENT 'numbers: alike with different numbers or dates; terms: alike; rest.',
    probability Float64 COMMENT 'Probability that the pair is in the sample of the pairs of its question; use its inverse as the weight.',
    verdict Nullable(Enum8('no_contradiction' = 1, 'contradiction' = 2, 'temporal_supersession' = 3, 'temporal_regression' = 4, 'temporal_evolution' = 5, 'negation_artifact' = 6, 'uncertain' = 7)) COMMENT 'Verdict of both orders; uncertain if they differ; null if the pair was not judged. The set is closed.',
    severity Enum8('info' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Severity of the finding; info without one.',
    confidence Nullable(Float64) COMMENT 'The lower confidence of both orders; null if the pair was not judged.',
    claims Array(String) COMMENT 'The two claims, word for word from the texts; empty without a finding.',
    reason String COMMENT 'Reason of the judge; empty without one.',
    judge_error LowCardinality(String) COMMENT 'Kind of error if the pair was tried without a verdict; empty otherwise.',
    finding_id String COMMENT 'Identity of the finding: its two claims, hashed; empty without one.',
    state LowCardinality(String) COMMENT 'State of the finding in this run: new, persisting or reopened; empty without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, result_id, run_id, project, started_at, created_at, place, pair_id, pair_key, query_key, query, documents, texts,
    stratum, probability, verdict, severity, confidence, claims, reason, judge_error, finding_id, state, stored_at
FROM `assay_base_local`.contradiction_pairs FINAL
COMMENT 'Pairs of retrieved documents that were to be judged for contradictions: one row for each run and pair.';

CREATE OR REPLACE VIEW `assay_local`.contradiction_labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    result_id UUID COMMENT 'The pair in a run that was labelled.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    pair_id String COMMENT 'The pair, as in its row.',
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.',
    label Enum8('confirm' = 1, 'refute' = 2, 'skip' = 3) COMMENT 'confirm: the texts contradict each other; refute: they do not; skip: the labeller did not decide, so it does not count as one. The set is closed.',
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict, or among those with an error; null for a label outside of the queue.',
    labeller String COMMENT 'Name of the person who labelled.',
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).',
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    schema_version, label_id, result_id, run_id, project, pair_id, created_at, label, probability, labeller, labelled_at, note, stored_at
FROM
(
    SELECT
        schema_version, label_id, result_id, run_id, project, pair_id, created_at, label, probability, labeller, labelled_at, note,
        stored_at
    FROM `assay_base_local`.contradiction_labels
    ORDER BY stored_at DESC, label_id DESC
    LIMIT 1 BY project, result_id, labeller, isNull(probability)
)
COMMENT 'Labels of people on pairs of documents: the latest of each labeller for each pair of a run, one in the queue and one outside of it.';

CREATE DATABASE IF NOT EXISTS `assay_base` ON CLUSTER '{cluster}';

CREATE DATABASE IF NOT EXISTS `assay` ON CLUSTER '{cluster}';

CREATE TABLE IF NOT EXISTS `assay_base`.candidates ON CLUSTER '{cluster}'
AS `assay_base_local`.candidates
ENGINE = Distributed('{cluster}', 'assay_base_local', 'candidates', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay_base`.answers ON CLUSTER '{cluster}'
AS `assay_base_local`.answers
ENGINE = Distributed('{cluster}', 'assay_base_local', 'answers', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay_base`.feedback ON CLUSTER '{cluster}'
AS `assay_base_local`.feedback
ENGINE = Distributed('{cluster}', 'assay_base_local', 'feedback', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay_base`.capture_failures ON CLUSTER '{cluster}'
AS `assay_base_local`.capture_failures
ENGINE = Distributed('{cluster}', 'assay_base_local', 'capture_failures', cityHash64(failure_id));

CREATE TABLE IF NOT EXISTS `assay_base`.watermarks ON CLUSTER '{cluster}'
AS `assay_base_local`.watermarks
ENGINE = Distributed('{cluster}', 'assay_base_local', 'watermarks', cityHash64(shard));

CREATE TABLE IF NOT EXISTS `assay_base`.schema_migrations ON CLUSTER '{cluster}'
AS `assay_base_local`.schema_migrations
ENGINE = Distributed('{cluster}', 'assay_base_local', 'schema_migrations', cityHash64(version));

CREATE TABLE IF NOT EXISTS `assay`.candidates ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'candidates');

CREATE TABLE IF NOT EXISTS `assay`.answers ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'answers');

CREATE TABLE IF NOT EXISTS `assay`.feedback ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'feedback');

CREATE TABLE IF NOT EXISTS `assay`.capture_failures ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'capture_failures');

CREATE TABLE IF NOT EXISTS `assay`.watermarks ON CLUSTER '{cluster}'
(
    shard UInt8 COMMENT 'Shard of the streams, from 0.',
    watermark UInt64 COMMENT 'Every captured entry of the shard with an id up to this is stored or recorded as a failure. Never goes back.',
    updated_at DateTime64(3, 'UTC') COMMENT 'When the writer last moved it (UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'watermarks');

CREATE TABLE IF NOT EXISTS `assay`.schema_migrations ON CLUSTER '{cluster}'
(
    version UInt32 COMMENT 'Number of the migration.',
    name String COMMENT 'Its file.',
    checksum String COMMENT 'SHA-256 of its text.',
    applied_at DateTime64(3, 'UTC') COMMENT 'When it was applied (UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'schema_migrations');

CREATE TABLE IF NOT EXISTS `assay_base`.rollup_minute ON CLUSTER '{cluster}'
AS `assay_base_local`.rollup_minute
ENGINE = Distributed('{cluster}', 'assay_base_local', 'rollup_minute');

CREATE TABLE IF NOT EXISTS `assay_base`.rollup_hour ON CLUSTER '{cluster}'
AS `assay_base_local`.rollup_hour
ENGINE = Distributed('{cluster}', 'assay_base_local', 'rollup_hour');

CREATE TABLE IF NOT EXISTS `assay`.rollup_minute ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    minute DateTime('UTC') COMMENT 'Start of the minute of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'rollup_minute');

CREATE TABLE IF NOT EXISTS `assay`.rollup_hour ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'rollup_hour');

CREATE TABLE IF NOT EXISTS `assay_base`.scores ON CLUSTER '{cluster}'
AS `assay_base_local`.scores
ENGINE = Distributed('{cluster}', 'assay_base_local', 'scores', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay_base`.calibrations ON CLUSTER '{cluster}'
AS `assay_base_local`.calibrations
ENGINE = Distributed('{cluster}', 'assay_base_local', 'calibrations', cityHash64(calibration_id));

CREATE TABLE IF NOT EXISTS `assay`.scores ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged. For a session, an id made of its project, id and start.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of the answer.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).',
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.',
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.',
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.',
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.',
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.',
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.',
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.',
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.',
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.',
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.',
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.',
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.',
    claims UInt64 COMMENT 'How many claims the answer was found to make.',
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.',
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.',
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.',
    detail String COMMENT 'Why there is no score. Never captured text.',
    verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.',
    session_id Nullable(String) COMMENT 'The session that was judged; null for an answer.',
    revision UInt64 COMMENT 'The revision of the session that was judged; 0 for an answer.',
    rubric Array(Tuple(dimension LowCardinality(String), criterion String, absence Bool, verdict Enum8('yes' = 1, 'no' = 2, 'not_applicable' = 3, 'not_judged' = 4), demoted Bool, turn UInt64)) COMMENT 'The rubric of the session: its items, written by the judge and scrubbed, with the verdict on each and the turn of its evidence.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'scores');

CREATE TABLE IF NOT EXISTS `assay`.calibrations ON CLUSTER '{cluster}'
(
    calibration_id UUID COMMENT 'Idempotency key of the run and metric.',
    calibrated_at DateTime64(3, 'UTC') COMMENT 'When it was computed (UTC, milliseconds).',
    project LowCardinality(String) COMMENT 'The tenant whose answers were labelled.',
    metric LowCardinality(String) COMMENT 'The metric that was calibrated.',
    fingerprint LowCardinality(String) COMMENT 'The judge that was calibrated.',
    threshold Float64 COMMENT 'An answer counts as good from this value of the metric on.',
    labels UInt64 COMMENT 'How many answers people labelled.',
    true_positives UInt64 COMMENT 'People and judge: good.',
    false_negatives UInt64 COMMENT 'People: good; judge: bad.',
    false_positives UInt64 COMMENT 'People: bad; judge: good.',
    true_negatives UInt64 COMMENT 'People and judge: bad.',
    kappa Nullable(Float64) COMMENT 'Agreement beyond chance (Cohen). Null when labels or verdicts are all alike.',
    tpr Nullable(Float64) COMMENT 'Share of good answers that the judge calls good; null without any.',
    tpr_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    tpr_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    tnr Nullable(Float64) COMMENT 'Share of bad answers that the judge calls bad; null without any.',
    tnr_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    tnr_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    rectifier Float64 COMMENT 'Mean of label minus verdict: what the PPI estimate adds to the raw rate.',
    rectifier_variance Float64 COMMENT 'Variance of label minus verdict over the labelled answers.',
    pages Bool COMMENT 'Whether alerts on this metric may be critical: kappa and tnr reach what the settings ask for.'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'calibrations');

CREATE TABLE IF NOT EXISTS `assay_base`.alerts ON CLUSTER '{cluster}'
AS `assay_base_local`.alerts
ENGINE = Distributed('{cluster}', 'assay_base_local', 'alerts', cityHash64(alert_id));

CREATE TABLE IF NOT EXISTS `assay`.alerts ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the format; 1.',
    alert_id UUID COMMENT 'The episode: the same from its first transition to its last.',
    transition_id UUID COMMENT 'Idempotency key: made of alert_id and sequence.',
    sequence UInt64 COMMENT 'Place of the transition in its episode, from 1.',
    kind Enum8('score_drift' = 1, 'retrieval_drift' = 2, 'query_drift' = 3, 'silence' = 4, 'judge_errors' = 5, 'judge_drift' = 6, 'failures' = 7, 'lag' = 8, 'watermark_age' = 9, 'budget' = 10, 'judge_stopped' = 11) COMMENT 'What the alert is about. The set is closed.',
    state Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state after this transition.',
    previous Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state before it; ok for the first.',
    severity Enum8('info' = 1, 'warning' = 2, 'critical' = 3) COMMENT 'How urgent this transition is.',
    project LowCardinality(String) COMMENT 'The tenant; all for the whole system.',
    service LowCardinality(Nullable(String)) COMMENT 'The producer, when the alert is about one.',
    metric LowCardinality(Nullable(String)) COMMENT 'What was measured.',
    series LowCardinality(Nullable(String)) COMMENT 'What the numbers come from: the fingerprint of the judge or the embedding model.',
    since DateTime64(3, 'UTC') COMMENT 'When the change is estimated to have begun (UTC, milliseconds).',
    at DateTime64(3, 'UTC') COMMENT 'When the transition happened, by the time of the samples (UTC, milliseconds).',
    value Nullable(Float64) COMMENT 'The metric since the change.',
    baseline Nullable(Float64) COMMENT 'The metric as it was before, or the limit.',
    effect Nullable(Float64) COMMENT 'How much it changed: relative to the baseline, or a distance between 0 and 1.',
    interval Array(Float64) COMMENT '95 % interval of value: low, high; empty without one.',
    n Nullable(UInt64) COMMENT 'How many samples value is made of.',
    evidence Nullable(Float64) COMMENT 'Evidence as a fraction of what raises an alert; 1 or more has raised it.',
    group LowCardinality(String) COMMENT 'Transitions with the same group at the same time belong in one notice.',
    summary String COMMENT 'What happened, in one sentence.',
    query String COMMENT 'SQL that shows more.',
    acknowledge String COMMENT 'The command that acknowledges it.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'alerts');

CREATE TABLE IF NOT EXISTS `assay`.open_episodes ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the format; 1.',
    alert_id UUID COMMENT 'The episode: the same from its first transition to its last.',
    transition_id UUID COMMENT 'Idempotency key: made of alert_id and sequence.',
    sequence UInt64 COMMENT 'Place of the transition in its episode, from 1.',
    kind Enum8('score_drift' = 1, 'retrieval_drift' = 2, 'query_drift' = 3, 'silence' = 4, 'judge_errors' = 5, 'judge_drift' = 6, 'failures' = 7, 'lag' = 8, 'watermark_age' = 9, 'budget' = 10, 'judge_stopped' = 11) COMMENT 'What the alert is about. The set is closed.',
    state Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state after this transition.',
    previous Enum8('ok' = 1, 'warn' = 2, 'critical' = 3, 'recovering' = 4, 'resolved' = 5) COMMENT 'The state before it; ok for the first.',
    severity Enum8('info' = 1, 'warning' = 2, 'critical' = 3) COMMENT 'How urgent this transition is.',
    project LowCardinality(String) COMMENT 'The tenant; all for the whole system.',
    service LowCardinality(Nullable(String)) COMMENT 'The producer, when the alert is about one.',
    metric LowCardinality(Nullable(String)) COMMENT 'What was measured.',
    series LowCardinality(Nullable(String)) COMMENT 'What the numbers come from: the fingerprint of the judge or the embedding model.',
    since DateTime64(3, 'UTC') COMMENT 'When the change is estimated to have begun (UTC, milliseconds).',
    at DateTime64(3, 'UTC') COMMENT 'When the transition happened, by the time of the samples (UTC, milliseconds).',
    value Nullable(Float64) COMMENT 'The metric since the change.',
    baseline Nullable(Float64) COMMENT 'The metric as it was before, or the limit.',
    effect Nullable(Float64) COMMENT 'How much it changed: relative to the baseline, or a distance between 0 and 1.',
    interval Array(Float64) COMMENT '95 % interval of value: low, high; empty without one.',
    n Nullable(UInt64) COMMENT 'How many samples value is made of.',
    evidence Nullable(Float64) COMMENT 'Evidence as a fraction of what raises an alert; 1 or more has raised it.',
    group LowCardinality(String) COMMENT 'Transitions with the same group at the same time belong in one notice.',
    summary String COMMENT 'What happened, in one sentence.',
    query String COMMENT 'SQL that shows more.',
    acknowledge String COMMENT 'The command that acknowledges it.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'open_episodes');

CREATE TABLE IF NOT EXISTS `assay_base`.eval_runs ON CLUSTER '{cluster}'
AS `assay_base_local`.eval_runs
ENGINE = Distributed('{cluster}', 'assay_base_local', 'eval_runs', cityHash64(run_id));

CREATE TABLE IF NOT EXISTS `assay_base`.eval_results ON CLUSTER '{cluster}'
AS `assay_base_local`.eval_results
ENGINE = Distributed('{cluster}', 'assay_base_local', 'eval_results', cityHash64(run_id));

CREATE TABLE IF NOT EXISTS `assay_base`.eval_outcomes ON CLUSTER '{cluster}'
AS `assay_base_local`.eval_outcomes
ENGINE = Distributed('{cluster}', 'assay_base_local', 'eval_outcomes', cityHash64(attempt_id));

CREATE TABLE IF NOT EXISTS `assay`.eval_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run: made of its name, its start and what it measured, so that storing it again replaces it.',
    name String COMMENT 'What people call the run: the folder it was written to.',
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.',
    label Nullable(String) COMMENT 'What reports call it.',
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset.',
    dataset_version LowCardinality(String) COMMENT 'Its version.',
    dataset_fingerprint LowCardinality(String) COMMENT 'SHA-256 over its cases: runs over equal ones can be compared case by case.',
    target String COMMENT 'What was asked, as it was named: http://host/path, module:function or a command.',
    code_version Nullable(String) COMMENT 'The commit that was checked out where the run was made.',
    judge LowCardinality(Nullable(String)) COMMENT 'Fingerprint of the judge behind the metrics of answers; null without one.',
    seed Int64 COMMENT 'Of the resamples behind the intervals.',
    config String COMMENT 'Everything that was configured: a JSON object as text.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    completed_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null for one that was stopped.',
    cases UInt64 COMMENT 'How many cases have a result.',
    errored UInt64 COMMENT 'How many of them ended in an error.',
    means Map(LowCardinality(String), Float64) COMMENT 'Mean of each metric over the cases it applies to, weighted by the inverse of their inclusion probability.',
    latency_ms Map(LowCardinality(String), Float64) COMMENT 'Quantiles of the latency in milliseconds: latency_p50, latency_p95.',
    details String COMMENT 'What a later version may have written beside these columns: a JSON object as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'eval_runs');

CREATE TABLE IF NOT EXISTS `assay`.eval_results ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run.',
    case_id String COMMENT 'The case of the golden dataset.',
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.',
    place UInt64 COMMENT 'Place of the case in the dataset, from 0.',
    query_type LowCardinality(String) COMMENT 'Type of the query: temporal, actor, technical, status, multi-hop or null.',
    retrieved Array(String) COMMENT 'What came back, best first: slugs, or source::slug.',
    latency_ms Nullable(Float64) COMMENT 'How long it took, in milliseconds; null without an answer.',
    metrics Map(LowCardinality(String), Nullable(Float64)) COMMENT 'What was measured; null where a metric does not apply.',
    error Nullable(String) COMMENT 'Why there is no answer. Never what was asked.',
    tries UInt64 COMMENT 'How often it was asked.',
    cluster Nullable(String) COMMENT 'Cases of one session or document share it.',
    weight Float64 COMMENT 'Inverse of the probability with which the case was chosen.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    details String COMMENT 'What a later version may have written beside these columns: a JSON object as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'eval_results');

CREATE TABLE IF NOT EXISTS `assay`.eval_outcomes ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    attempt_id UUID COMMENT 'The attempt. It has two rows at first, started and its end, of which the end is shown.',
    evaluation LowCardinality(String) COMMENT 'Which evaluation: the name of its dataset and its target, hashed.',
    project LowCardinality(String) COMMENT 'The tenant whose system was evaluated.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the attempt began (UTC, milliseconds).',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it runs, or when it was killed.',
    outcome Enum8('started' = 1, 'pass' = 2, 'fail' = 3, 'inconclusive' = 4, 'error' = 5, 'budget_exceeded' = 6, 'rate_limited' = 7, 'no_judge_key' = 8) COMMENT 'How it ended; started while it runs, or when it was killed. The set is closed.',
    run_id Nullable(UUID) COMMENT 'The run it made.',
    run_name String COMMENT 'Its name; empty without one.',
    baseline String COMMENT 'The run it was compared with; empty without one.',
    cases UInt64 COMMENT 'How many cases have a result.',
    errored UInt64 COMMENT 'How many of them ended in an error.',
    failed_metrics Array(LowCardinality(String)) COMMENT 'The metrics that failed.',
    cost_usd Float64 COMMENT 'What it cost, in US dollars.',
    detail String COMMENT 'Why, in a sentence. Never captured text.',
    alerts Array(String) COMMENT 'The transitions of alerts that this outcome made, as published: JSON objects as text.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'eval_outcomes');

CREATE TABLE IF NOT EXISTS `assay_base`.operations_audit ON CLUSTER '{cluster}'
AS `assay_base_local`.operations_audit
ENGINE = Distributed('{cluster}', 'assay_base_local', 'operations_audit', cityHash64(operation_id));

CREATE TABLE IF NOT EXISTS `assay`.operations_audit ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    operation_id UUID COMMENT 'The attempt. Its start and its end share it.',
    outcome Enum8('started' = 1, 'done' = 2, 'failed' = 3, 'interrupted' = 4) COMMENT 'What this record is about: the start, or how the operation ended. The set is closed.',
    at DateTime64(3, 'UTC') COMMENT 'When the record was made (clock of the host that ran the operation, UTC, milliseconds).',
    operation LowCardinality(String) COMMENT 'The operation, named like its command: prune, dead drop.',
    actor String COMMENT 'Login name of the person, or uid N without one.',
    identity LowCardinality(String) COMMENT 'User of Redis or the store that made the change.',
    host String COMMENT 'Name of the host that ran the operation.',
    through LowCardinality(String) COMMENT 'Entry point: command line.',
    target String COMMENT 'Range of the operation: filters and ids, a JSON object as text. Never captured text.',
    planned UInt64 COMMENT 'Number of items to change, as counted before.',
    changed UInt64 COMMENT 'Number of items changed; 0 at the start.',
    comment String COMMENT 'Why, in the words of the actor, scrubbed; empty without one.',
    error_kind LowCardinality(String) COMMENT 'Kind or class of the error of a failed operation; empty without one.',
    version LowCardinality(String) COMMENT 'Version of Assay that ran the operation.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'operations_audit');

CREATE TABLE IF NOT EXISTS `assay`.operations ON CLUSTER '{cluster}'
(
    operation_id UUID COMMENT 'The attempt.',
    operation LowCardinality(String) COMMENT 'The operation, named like its command: prune, dead drop.',
    outcome Enum8('started' = 1, 'done' = 2, 'failed' = 3, 'interrupted' = 4) COMMENT 'How it ended; started while it runs, or if it was killed. The set is closed.',
    started_at DateTime64(3, 'UTC') COMMENT 'When it started (clock of the host that ran it, UTC, milliseconds).',
    ended_at Nullable(DateTime64(3, 'UTC')) COMMENT 'When it ended; null while it runs, or if it was killed.',
    actor String COMMENT 'Login name of the person, or uid N without one.',
    identity LowCardinality(String) COMMENT 'User of Redis or the store that made the change.',
    host String COMMENT 'Name of the host that ran the operation.',
    through LowCardinality(String) COMMENT 'Entry point: command line.',
    target String COMMENT 'Range of the operation: filters and ids, a JSON object as text. Never captured text.',
    planned UInt64 COMMENT 'Number of items to change, as counted before.',
    changed UInt64 COMMENT 'Number of items changed, as far as the operation got; 0 while it runs.',
    comment String COMMENT 'Why, in the words of the actor, scrubbed; empty without one.',
    error_kind LowCardinality(String) COMMENT 'Kind or class of the error of a failed operation; empty without one.',
    version LowCardinality(String) COMMENT 'Version of Assay that ran the operation.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the first of its records was written (clock of the store, UTC, microseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'operations');

CREATE TABLE IF NOT EXISTS `assay_base`.tool_calls ON CLUSTER '{cluster}'
AS `assay_base_local`.tool_calls
ENGINE = Distributed('{cluster}', 'assay_base_local', 'tool_calls', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay_base`.server_events ON CLUSTER '{cluster}'
AS `assay_base_local`.server_events
ENGINE = Distributed('{cluster}', 'assay_base_local', 'server_events', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay_base`.session_parts ON CLUSTER '{cluster}'
AS `assay_base_local`.session_parts
ENGINE = Distributed('{cluster}', 'assay_base_local', 'session_parts', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay`.tool_calls ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'tool_calls');

CREATE TABLE IF NOT EXISTS `assay`.server_events ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'server_events');

CREATE TABLE IF NOT EXISTS `assay`.session_parts ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'session_parts');

CREATE TABLE IF NOT EXISTS `assay_base`.rollup_day ON CLUSTER '{cluster}'
AS `assay_base_local`.rollup_day
ENGINE = Distributed('{cluster}', 'assay_base_local', 'rollup_day');

CREATE TABLE IF NOT EXISTS `assay`.rollup_day ON CLUSTER '{cluster}'
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    day Date COMMENT 'Day of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'rollup_day');

CREATE TABLE IF NOT EXISTS `assay_base`.labels ON CLUSTER '{cluster}'
AS `assay_base_local`.labels
ENGINE = Distributed('{cluster}', 'assay_base_local', 'labels', cityHash64(event_id));

CREATE TABLE IF NOT EXISTS `assay`.labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    event_id UUID COMMENT 'The answer that was labelled.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the answer (UTC, milliseconds), as in its row. Retention counts from here, so that a label goes with its answer.',
    project LowCardinality(String) COMMENT 'The tenant.',
    queue LowCardinality(String) COMMENT 'Name of the sample that was labelled.',
    label Enum8('good' = 1, 'bad' = 2, 'unsure' = 3) COMMENT 'Verdict of the labeller. The set is closed.',
    labeller String COMMENT 'Name of the person who labelled.',
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).',
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.',
    supersedes Nullable(UUID) COMMENT 'The label_id that this label replaces or withdraws; null for a first label.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'labels');

CREATE TABLE IF NOT EXISTS `assay_base`.dataset_cases ON CLUSTER '{cluster}'
AS `assay_base_local`.dataset_cases
ENGINE = Distributed('{cluster}', 'assay_base_local', 'dataset_cases', cityHash64(case_id));

CREATE TABLE IF NOT EXISTS `assay`.dataset_case_versions ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    project LowCardinality(String) COMMENT 'The tenant whose traffic the case came from.',
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset, unique within the project.',
    case_id String COMMENT 'The case, unique within the dataset.',
    version UInt64 COMMENT 'Version of the case, from 1.',
    event_id Nullable(UUID) COMMENT 'The retrieval that the case came from; null without one.',
    query String COMMENT 'The query, as captured: scrubbed. At most 51,200 characters.',
    expected_slugs Array(String) COMMENT 'Slugs of the documents that answer the query.',
    expected_chunk_ids Array(Int64) COMMENT 'Ids of the chunks that answer the query.',
    null_case Bool COMMENT 'True if no document answers the query, so that nothing should be found.',
    expected_answer Nullable(String) COMMENT 'The answer that is right, scrubbed; null without one. At most 51,200 characters.',
    inclusion_probability Float64 COMMENT 'Probability that this query was chosen from the traffic; use its inverse as the weight in totals.',
    reviewer String COMMENT 'Name of the person who reviewed this version.',
    at DateTime64(6, 'UTC') COMMENT 'When it was reviewed (clock of the host, UTC, microseconds).',
    retired Bool COMMENT 'True if this version takes the case out of the dataset.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'dataset_case_versions');

CREATE TABLE IF NOT EXISTS `assay`.dataset_cases ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    project LowCardinality(String) COMMENT 'The tenant whose traffic the case came from.',
    dataset LowCardinality(String) COMMENT 'Name of the golden dataset, unique within the project.',
    case_id String COMMENT 'The case, unique within the dataset.',
    version UInt64 COMMENT 'Version of the case, from 1.',
    event_id Nullable(UUID) COMMENT 'The retrieval that the case came from; null without one.',
    query String COMMENT 'The query, as captured: scrubbed. At most 51,200 characters.',
    expected_slugs Array(String) COMMENT 'Slugs of the documents that answer the query.',
    expected_chunk_ids Array(Int64) COMMENT 'Ids of the chunks that answer the query.',
    null_case Bool COMMENT 'True if no document answers the query, so that nothing should be found.',
    expected_answer Nullable(String) COMMENT 'The answer that is right, scrubbed; null without one. At most 51,200 characters.',
    inclusion_probability Float64 COMMENT 'Probability that this query was chosen from the traffic; use its inverse as the weight in totals.',
    reviewer String COMMENT 'Name of the person who reviewed this version.',
    at DateTime64(6, 'UTC') COMMENT 'When it was reviewed (clock of the host, UTC, microseconds).',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'dataset_cases');

CREATE TABLE IF NOT EXISTS `assay_base`.audit_rows ON CLUSTER '{cluster}'
AS `assay_base_local`.audit_rows
ENGINE = Distributed('{cluster}', 'assay_base_local', 'audit_rows', cityHash64(log));

CREATE TABLE IF NOT EXISTS `assay_base`.audit_leaves ON CLUSTER '{cluster}'
AS `assay_base_local`.audit_leaves
ENGINE = Distributed('{cluster}', 'assay_base_local', 'audit_leaves', cityHash64(log));

CREATE TABLE IF NOT EXISTS `assay_base`.audit_disclosures ON CLUSTER '{cluster}'
AS `assay_base_local`.audit_disclosures
ENGINE = Distributed('{cluster}', 'assay_base_local', 'audit_disclosures', cityHash64(log));

CREATE TABLE IF NOT EXISTS `assay_base`.audit_checkpoints ON CLUSTER '{cluster}'
AS `assay_base_local`.audit_checkpoints
ENGINE = Distributed('{cluster}', 'assay_base_local', 'audit_checkpoints', cityHash64(log));

CREATE TABLE IF NOT EXISTS `assay_base`.audit_anchors ON CLUSTER '{cluster}'
AS `assay_base_local`.audit_anchors
ENGINE = Distributed('{cluster}', 'assay_base_local', 'audit_anchors', cityHash64(log));

CREATE TABLE IF NOT EXISTS `assay`.audit_rows ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place in the log, from 0.',
    kind LowCardinality(String) COMMENT 'What the row is about: tool_call, server_event, lost or operation.',
    source_id UUID COMMENT 'The event_id; the failure_id of what was lost; an id made of operation_id and outcome.',
    created_at DateTime64(6, 'UTC') COMMENT 'When the log received the event, or the failure or record was made (UTC, microseconds). Retention counts from here.',
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer; assay for an operation.',
    server_session_id Nullable(String) COMMENT 'One run of the server; null if unknown.',
    duration_us Nullable(UInt64) COMMENT 'Wall-clock time of the call, in microseconds.',
    error_kind LowCardinality(Nullable(String)) COMMENT 'Kind of error or refusal; the reason of a loss.',
    pii_attempted Array(LowCardinality(String)) COMMENT 'Categories of personal data that were found.',
    pii_blocked Array(LowCardinality(String)) COMMENT 'Of these, the categories that were kept out or made the policy refuse.',
    late Bool COMMENT 'True if it was stored after the log had passed its place: written at the end then.',
    place UInt64 COMMENT 'Place of the source among those of its kind: the id of an event, otherwise Unix microseconds of its stored_at.',
    id UInt64 COMMENT 'Number of the row in the log, from 1.',
    occurred_at DateTime64(6, 'UTC') COMMENT 'When it happened, by the clock of the producer (UTC, microseconds).',
    source_connection_id LowCardinality(String) COMMENT 'The same as service.',
    caller_id Nullable(String) COMMENT 'Salted digest of the agent or person; null without one. The disclosure has the name.',
    tool_name LowCardinality(String) COMMENT 'The tool called; the subtype of a server event; the service that lost an event; the operation.',
    status LowCardinality(String) COMMENT 'Result of a call: success, empty, partial, degraded, error, refused; lost; or the outcome of an operation.',
    refusal_reason LowCardinality(Nullable(String)) COMMENT 'Why a call was refused, if it is one of six known reasons.',
    cost_class LowCardinality(String) COMMENT 'refused for a refused call, otherwise small.',
    pii_categories LowCardinality(String) COMMENT 'The attempted categories, sorted, separated by commas.',
    ast_shape_hash Nullable(String) COMMENT 'Always null.',
    rule_id Nullable(String) COMMENT 'Always null.',
    fingerprint String COMMENT 'SHA-256 of categories, cost class and reason, in hex.',
    fingerprint_version LowCardinality(String) COMMENT 'Always fp-v1.',
    chain_hash String COMMENT 'SHA-256 of the previous chain_hash and the thirteen columns from id to fingerprint_version, in hex.',
    sd Array(String) COMMENT 'Salted digests of the fields that may be personal, sorted (RFC 9901).',
    leaf_hash String COMMENT 'RFC 6962 hash of the canonical row, in hex.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'audit_rows');

CREATE TABLE IF NOT EXISTS `assay`.audit_leaves ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place in the log, from 0.',
    leaf_hash String COMMENT 'RFC 6962 hash of the canonical row, in hex.',
    chain_hash String COMMENT 'The chain_hash of the row, in hex, so that the chain can be continued after the row has expired.',
    kind LowCardinality(String) COMMENT 'What the row is about: tool_call, server_event, lost or operation.',
    source_id UUID COMMENT 'What the row is about: see audit_rows.',
    place UInt64 COMMENT 'The place of the row.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the leaf was written (clock of the store, UTC, microseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'audit_leaves');

CREATE TABLE IF NOT EXISTS `assay`.audit_disclosures ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place of the row in the log, from 0.',
    digest String COMMENT 'Its digest, which the row has in sd.',
    disclosure String COMMENT 'base64url of the JSON array of salt, name and value (RFC 9901).',
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.',
    created_at DateTime64(6, 'UTC') COMMENT 'The created_at of the row. Retention counts from here.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'audit_disclosures');

CREATE TABLE IF NOT EXISTS `assay`.audit_checkpoints ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    size UInt64 COMMENT 'Number of leaves.',
    root String COMMENT 'Root of the tree, in hex.',
    note String COMMENT 'The signed checkpoint (c2sp.org/tlog-checkpoint).',
    edge Array(String) COMMENT 'Roots of the complete subtrees from left to right, in hex: a tree continues from them.',
    places Map(String, UInt64) COMMENT 'Greatest place of each kind of source in these leaves, events as one: the auditor continues from them.',
    rotation String COMMENT 'If the key was replaced here, the statement that both keys signed; otherwise empty.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'audit_checkpoints');

CREATE TABLE IF NOT EXISTS `assay`.audit_anchors ON CLUSTER '{cluster}'
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    size UInt64 COMMENT 'Number of leaves of the checkpoint.',
    anchor LowCardinality(String) COMMENT 'Who has it: the name of a witness, the host of a time-stamp server, a directory.',
    kind LowCardinality(String) COMMENT 'witness, timestamp or directory.',
    note String COMMENT 'The signed checkpoint; of a witness, with its cosignature (c2sp.org/tlog-cosignature).',
    token String COMMENT 'The response of a time-stamp server (RFC 3161) in base64; otherwise empty.',
    anchored_at DateTime64(6, 'UTC') COMMENT 'When: of a witness or a time-stamp server, by its own clock (UTC).',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'audit_anchors');

CREATE TABLE IF NOT EXISTS `assay`.events ON CLUSTER '{cluster}'
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
ENGINE = Distributed('{cluster}', 'assay_local', 'events');

CREATE TABLE IF NOT EXISTS `assay_base`.contradiction_runs ON CLUSTER '{cluster}'
AS `assay_base_local`.contradiction_runs
ENGINE = Distributed('{cluster}', 'assay_base_local', 'contradiction_runs', cityHash64(run_id));

CREATE TABLE IF NOT EXISTS `assay_base`.contradiction_pairs ON CLUSTER '{cluster}'
AS `assay_base_local`.contradiction_pairs
ENGINE = Distributed('{cluster}', 'assay_base_local', 'contradiction_pairs', cityHash64(run_id));

CREATE TABLE IF NOT EXISTS `assay_base`.contradiction_labels ON CLUSTER '{cluster}'
AS `assay_base_local`.contradiction_labels
ENGINE = Distributed('{cluster}', 'assay_base_local', 'contradiction_labels', cityHash64(run_id));

CREATE TABLE IF NOT EXISTS `assay`.contradiction_runs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    completed_at DateTime64(3, 'UTC') COMMENT 'When it ended (UTC, milliseconds).',
    status Enum8('completed' = 1, 'partial' = 2, 'judge_failed' = 3) COMMENT 'completed: every pair was tried; partial: the budget or the API ended it; judge_failed: no pair was judged, so there is no rate. The set is closed.',
    prompt LowCardinality(String) COMMENT 'Version of prompt and rules, with their hash. Another one starts another series.',
    model LowCardinality(String) COMMENT 'Model of the judge, with its fingerprint. Another one starts another series.',
    sampling String COMMENT 'How pairs were drawn: documents of a question, pairs of a question, characters of a text. Another one starts another series.',
    scope String COMMENT 'Where questions and documents came from. Another one starts another series.',
    queries UInt64 COMMENT 'Questions with a pair of documents.',
    intended UInt64 COMMENT 'Pairs that were to be judged.',
    judged UInt64 COMMENT 'Pairs that were judged, uncertain ones included.',
    judge_errors UInt64 COMMENT 'Pairs that were tried without a verdict.',
    contradictions UInt64 COMMENT 'Pairs that are strict contradictions.',
    rate Nullable(Float64) COMMENT 'Share of contradictions among the judged pairs, weighted by the inverse of their inclusion probability; null without any.',
    rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    query_rate Nullable(Float64) COMMENT 'Share of questions with at least one contradiction, of those with judged pairs; null without any.',
    query_rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    query_rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    cost_usd Float64 COMMENT 'Actual cost in US dollars; a failed call that may have been billed counts with its upper bound.',
    summary String COMMENT 'The report without texts: a JSON object as text.',
    pairs_gone Array(String) COMMENT 'Pairs, by pair_key, with an open finding whose question was asked again in this run and no longer retrieved both documents.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'contradiction_runs');

CREATE TABLE IF NOT EXISTS `assay`.contradiction_pairs ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    result_id UUID COMMENT 'This pair in this run.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event with the documents; started_at without one. Retention counts from here.',
    place UInt64 COMMENT 'Place of the pair in the random order of the run, from 0.',
    pair_id String COMMENT 'Question, documents and texts, hashed: the same in each run that judges them unchanged.',
    pair_key String COMMENT 'Question and documents, hashed: the same after a text changed.',
    query_key String COMMENT 'Question, hashed: the same for each pair of it.',
    query String COMMENT 'The question, scrubbed.',
    documents Array(String) COMMENT 'Ids of the two documents.',
    texts Array(String) COMMENT 'Their texts as the judge received them, scrubbed.',
    stratum LowCardinality(String) COMMENT 'numbers: alike with different numbers or dates; terms: alike; rest.',
    probability Float64 COMMENT 'Probability that the pair is in the sample of the pairs of its question; use its inverse as the weight.',
    verdict Nullable(Enum8('no_contradiction' = 1, 'contradiction' = 2, 'temporal_supersession' = 3, 'temporal_regression' = 4, 'temporal_evolution' = 5, 'negation_artifact' = 6, 'uncertain' = 7)) COMMENT 'Verdict of both orders; uncertain if they differ; null if the pair was not judged. The set is closed.',
    severity Enum8('info' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Severity of the finding; info without one.',
    confidence Nullable(Float64) COMMENT 'The lower confidence of both orders; null if the pair was not judged.',
    claims Array(String) COMMENT 'The two claims, word for word from the texts; empty without a finding.',
    reason String COMMENT 'Reason of the judge; empty without one.',
    judge_error LowCardinality(String) COMMENT 'Kind of error if the pair was tried without a verdict; empty otherwise.',
    finding_id String COMMENT 'Identity of the finding: its two claims, hashed; empty without one.',
    state LowCardinality(String) COMMENT 'State of the finding in this run: new, persisting or reopened; empty without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'contradiction_pairs');

CREATE TABLE IF NOT EXISTS `assay`.contradiction_labels ON CLUSTER '{cluster}'
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    result_id UUID COMMENT 'The pair in a run that was labelled.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    pair_id String COMMENT 'The pair, as in its row.',
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.',
    label Enum8('confirm' = 1, 'refute' = 2, 'skip' = 3) COMMENT 'confirm: the texts contradict each other; refute: they do not; skip: the labeller did not decide, so it does not count as one. The set is closed.',
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict, or among those with an error; null for a label outside of the queue.',
    labeller String COMMENT 'Name of the person who labelled.',
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).',
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
ENGINE = Distributed('{cluster}', 'assay_local', 'contradiction_labels');

CREATE VIEW IF NOT EXISTS `assay`.watermark ON CLUSTER '{cluster}'
(
    watermark UInt64 COMMENT 'Every captured entry with an id up to this is stored or recorded as a failure, in every shard.',
    updated_at DateTime64(3, 'UTC') COMMENT 'When the shard that moved longest ago moved it (UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT min(watermark) AS watermark, min(updated_at) AS updated_at
FROM `assay_base`.watermarks FINAL
COMMENT 'How far the log is stored: one row, the least watermark of all shards.';

CREATE VIEW IF NOT EXISTS `assay`.judge_spend ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day on which the answers were judged (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    backend LowCardinality(String) COMMENT 'Who judged.',
    model LowCardinality(String) COMMENT 'Model of the judge.',
    fingerprint LowCardinality(String) COMMENT 'The judge.',
    judged UInt64 COMMENT 'Answers that were handed to the judge.',
    skipped_budget UInt64 COMMENT 'Answers passed over because the budget was used up.',
    cost_usd Float64 COMMENT 'What they cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    toDate(judged_at, 'UTC') AS day, project, backend, model, fingerprint,
    countIf(status IN ('scored', 'abstained', 'judge_error')) AS judged, countIf(status = 'skipped_budget') AS skipped_budget,
    sum(scores.cost_usd) AS cost_usd, sum(scores.input_tokens) AS input_tokens, sum(scores.output_tokens) AS output_tokens
FROM `assay_base`.scores AS scores FINAL
WHERE status != 'not_sampled'
GROUP BY day, project, backend, model, fingerprint
COMMENT 'What judging costs, by day, project and judge.';

CREATE VIEW IF NOT EXISTS `assay`.quality_by_day ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day of the answers (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    metric LowCardinality(String) COMMENT 'What was measured, in [0, 1].',
    fingerprint LowCardinality(String) COMMENT 'The judge. Numbers of different judges cannot be compared.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, or lexical, which is a baseline.',
    n UInt64 COMMENT 'Answers of the base stream that were scored.',
    mean Float64 COMMENT 'Mean of the metric, as the judge says (raw).',
    mean_low Float64 COMMENT 'Lower end of its 95 % interval.',
    mean_high Float64 COMMENT 'Upper end of its 95 % interval.',
    threshold Nullable(Float64) COMMENT 'An answer counts as good from this value on; null without a calibration.',
    raw_rate Nullable(Float64) COMMENT 'Share of good answers, as the judge says (raw); null without a calibration.',
    ppi_rate Nullable(Float64) COMMENT 'Share of good answers, corrected for what the judge gets wrong (prediction-powered inference); null without a calibration.',
    ppi_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    ppi_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    labels Nullable(UInt64) COMMENT 'Human labels behind the correction.',
    kappa Nullable(Float64) COMMENT 'Agreement of judge and people beyond chance.'
)
DEFINER = owner SQL SECURITY DEFINER
AS WITH
    calibrated AS
    (
        SELECT project, metric, fingerprint, threshold, labels, kappa, rectifier, rectifier_variance
        FROM `assay_base`.calibrations FINAL
        ORDER BY calibrated_at DESC
        LIMIT 1 BY project, metric, fingerprint
    ),
    judged AS
    (
        SELECT
            toDate(event_time, 'UTC') AS judged_day, s.project AS judged_project, measured.1 AS judged_metric,
            s.fingerprint AS judged_by, s.backend AS judged_backend, measured.2 AS value, 1 / base_probability AS weight
        FROM `assay_base`.scores AS s FINAL
        ARRAY JOIN arrayZip(mapKeys(metrics), mapValues(metrics)) AS measured
        WHERE s.base AND s.status = 'scored'
    ),
    days AS
    (
        SELECT
            judged_day, judged_project, judged_metric, judged_by, any(judged_backend) AS judged_backend, count() AS scored,
            sum(weight * value) / sum(weight) AS middle,
            sqrt(greatest(0, sum(weight * weight * value * value) - 2 * middle * sum(weight * weight * value)
                + middle * middle * sum(weight * weight))) / sum(weight) AS spread,
            any(c.labels) AS human, any(c.threshold) AS limit_of_good, any(c.kappa) AS agreement,
            any(c.rectifier) AS correction, any(c.rectifier_variance) AS correction_variance,
            sum(weight * (value >= c.threshold)) / sum(weight) AS rate,
            sum(weight * weight * pow((value >= c.threshold), 2)) - 2 * rate * sum(weight * weight * (value >= c.threshold))
                + rate * rate * sum(weight * weight) AS rate_squares,
            greatest(0, rate_squares) / pow(sum(weight), 2) + correction_variance / nullIf(human, 0) AS variance
        FROM judged
        LEFT JOIN calibrated AS c ON c.project = judged_project AND c.metric = judged_metric AND c.fingerprint = judged_by
        GROUP BY judged_day, judged_project, judged_metric, judged_by
    )
SELECT
    judged_day AS day, judged_project AS project, judged_metric AS metric, judged_by AS fingerprint, judged_backend AS backend,
    scored AS n, middle AS mean, greatest(0, middle - 1.96 * spread) AS mean_low, least(1, middle + 1.96 * spread) AS mean_high,
    if(human > 0, limit_of_good, NULL) AS threshold, if(human > 0, rate, NULL) AS raw_rate,
    if(human > 0, least(1, greatest(0, rate + correction)), NULL) AS ppi_rate,
    if(human > 0, least(1, greatest(0, rate + correction - 1.96 * sqrt(variance))), NULL) AS ppi_low,
    if(human > 0, least(1, greatest(0, rate + correction + 1.96 * sqrt(variance))), NULL) AS ppi_high,
    if(human > 0, human, NULL) AS labels, if(human > 0, agreement, NULL) AS kappa
FROM days
COMMENT 'Quality by day, project, metric and judge: the raw mean, and where there are human labels the corrected share of good answers.';

CREATE VIEW IF NOT EXISTS `assay`.judging_by_day ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day of the answers (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    fingerprint LowCardinality(String) COMMENT 'The judge.',
    backend LowCardinality(String) COMMENT 'Who judged.',
    answers UInt64 COMMENT 'Answers that the judge saw, sampled or not.',
    sampled UInt64 COMMENT 'Answers that were to be judged.',
    base UInt64 COMMENT 'Those of them in the unbiased base stream.',
    scored UInt64 COMMENT 'Answers with a score.',
    abstained UInt64 COMMENT 'Answers that make no claim to judge.',
    no_context UInt64 COMMENT 'Answers without a passage to judge them by.',
    judge_error UInt64 COMMENT 'Answers that the judge failed on.',
    skipped_budget UInt64 COMMENT 'Answers passed over because the budget was used up.',
    coverage Float64 COMMENT 'Share of sampled answers that ended with a score, an abstention or no context: the rest is missing. 1 when none was sampled.',
    checks_failed UInt64 COMMENT 'Answers that failed a check of layer 1.',
    cost_usd Float64 COMMENT 'What judging cost, in US dollars.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    toDate(event_time, 'UTC') AS day, s.project AS project, s.fingerprint AS fingerprint, any(s.backend) AS backend, count() AS answers,
    countIf(status != 'not_sampled') AS sampled, countIf(s.base AND status != 'not_sampled') AS base,
    countIf(status = 'scored') AS scored, countIf(status = 'abstained') AS abstained, countIf(status = 'no_context') AS no_context,
    countIf(status = 'judge_error') AS judge_error, countIf(status = 'skipped_budget') AS skipped_budget,
    if(sampled = 0, 1, (scored + abstained + no_context) / sampled) AS coverage,
    countIf(arrayExists(passed -> NOT passed, mapValues(checks))) AS checks_failed, sum(s.cost_usd) AS cost_usd
FROM `assay_base`.scores AS s FINAL
GROUP BY day, project, fingerprint
COMMENT 'How much of the traffic was judged, by day, project and judge, and how it ended.';

CREATE VIEW IF NOT EXISTS `assay`.feedback_by_day ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day of the verdicts (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of what was judged; of the verdict where that is not there.',
    kind LowCardinality(String) COMMENT 'What was judged: answer, retrieval, or unknown where it is not stored (any more).',
    positive UInt64 COMMENT 'Verdicts that it was good.',
    negative UInt64 COMMENT 'Verdicts that it was bad.',
    events UInt64 COMMENT 'Distinct answers or retrievals that were judged.',
    with_text UInt64 COMMENT 'Verdicts with words beside them.',
    people UInt64 COMMENT 'Distinct pseudonyms among those who gave one.'
)
DEFINER = owner SQL SECURITY DEFINER
AS WITH
    judged AS
    (
        SELECT event_id AS judged_id, service AS judged_service, 'answer' AS judged_kind
        FROM `assay_base`.answers FINAL
        WHERE event_id IN (SELECT target_event_id FROM `assay_base`.feedback)
        UNION ALL
        SELECT event_id AS judged_id, service AS judged_service, 'retrieval' AS judged_kind
        FROM `assay_base`.candidates FINAL
        WHERE event_id IN (SELECT target_event_id FROM `assay_base`.feedback)
    )
SELECT
    toDate(f.event_time, 'UTC') AS day, f.project AS project,
    if(judged_kind = '', f.service, judged_service) AS service, if(judged_kind = '', 'unknown', judged_kind) AS kind,
    countIf(verdict = 'positive') AS positive, countIf(verdict = 'negative') AS negative, uniqExact(target_event_id) AS events,
    countIf(notEmpty(ifNull(text, ''))) AS with_text, uniqExact(user_hash) AS people
FROM `assay_base`.feedback AS f FINAL
LEFT JOIN judged ON judged_id = f.target_event_id
GROUP BY day, project, service, kind
COMMENT 'What people think of answers and retrievals, by day, project, service and kind.';

CREATE OR REPLACE VIEW `assay`.quality_by_day ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day of the answers (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    metric LowCardinality(String) COMMENT 'What was measured, in [0, 1].',
    fingerprint LowCardinality(String) COMMENT 'The judge. Numbers of different judges cannot be compared.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.',
    n UInt64 COMMENT 'Answers of the base stream that were scored.',
    mean Float64 COMMENT 'Mean of the metric, as the judge says (raw).',
    mean_low Float64 COMMENT 'Lower end of its 95 % interval.',
    mean_high Float64 COMMENT 'Upper end of its 95 % interval.',
    threshold Nullable(Float64) COMMENT 'An answer counts as good from this value on; null without a calibration.',
    raw_rate Nullable(Float64) COMMENT 'Share of good answers, as the judge says (raw); null without a calibration.',
    ppi_rate Nullable(Float64) COMMENT 'Share of good answers, corrected for what the judge gets wrong (prediction-powered inference); null without a calibration.',
    ppi_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    ppi_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    labels Nullable(UInt64) COMMENT 'Human labels behind the correction.',
    kappa Nullable(Float64) COMMENT 'Agreement of judge and people beyond chance.'
)
DEFINER = owner SQL SECURITY DEFINER
AS WITH
    calibrated AS
    (
        SELECT project, metric, fingerprint, threshold, labels, kappa, rectifier, rectifier_variance
        FROM `assay_base`.calibrations FINAL
        ORDER BY calibrated_at DESC
        LIMIT 1 BY project, metric, fingerprint
    ),
    judged AS
    (
        SELECT
            toDate(event_time, 'UTC') AS judged_day, s.project AS judged_project, measured.1 AS judged_metric,
            s.fingerprint AS judged_by, s.backend AS judged_backend, measured.2 AS value, 1 / base_probability AS weight
        FROM `assay_base`.scores AS s FINAL
        ARRAY JOIN arrayZip(mapKeys(metrics), mapValues(metrics)) AS measured
        WHERE s.base AND s.status = 'scored'
    ),
    days AS
    (
        SELECT
            judged_day, judged_project, judged_metric, judged_by, any(judged_backend) AS judged_backend, count() AS scored,
            sum(weight * value) / sum(weight) AS middle,
            sqrt(greatest(0, sum(weight * weight * value * value) - 2 * middle * sum(weight * weight * value)
                + middle * middle * sum(weight * weight))) / sum(weight) AS spread,
            any(c.labels) AS human, any(c.threshold) AS limit_of_good, any(c.kappa) AS agreement,
            any(c.rectifier) AS correction, any(c.rectifier_variance) AS correction_variance,
            sum(weight * (value >= c.threshold)) / sum(weight) AS rate,
            sum(weight * weight * pow((value >= c.threshold), 2)) - 2 * rate * sum(weight * weight * (value >= c.threshold))
                + rate * rate * sum(weight * weight) AS rate_squares,
            greatest(0, rate_squares) / pow(sum(weight), 2) + correction_variance / nullIf(human, 0) AS variance
        FROM judged
        LEFT JOIN calibrated AS c ON c.project = judged_project AND c.metric = judged_metric AND c.fingerprint = judged_by
        GROUP BY judged_day, judged_project, judged_metric, judged_by
    )
SELECT
    judged_day AS day, judged_project AS project, judged_metric AS metric, judged_by AS fingerprint, judged_backend AS backend,
    scored AS n, middle AS mean, greatest(0, middle - 1.96 * spread) AS mean_low, least(1, middle + 1.96 * spread) AS mean_high,
    if(human > 0, limit_of_good, NULL) AS threshold, if(human > 0, rate, NULL) AS raw_rate,
    if(human > 0, least(1, greatest(0, rate + correction)), NULL) AS ppi_rate,
    if(human > 0, least(1, greatest(0, rate + correction - 1.96 * sqrt(variance))), NULL) AS ppi_low,
    if(human > 0, least(1, greatest(0, rate + correction + 1.96 * sqrt(variance))), NULL) AS ppi_high,
    if(human > 0, human, NULL) AS labels, if(human > 0, agreement, NULL) AS kappa
FROM days
COMMENT 'Quality by day, project, metric and judge: the raw mean, and where there are human labels the corrected share of good answers.';

CREATE VIEW IF NOT EXISTS `assay`.sessions ON CLUSTER '{cluster}'
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
DEFINER = owner SQL SECURITY DEFINER
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
        FROM `assay_base`.candidates AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 1, 0, 0, 0, 0
        FROM `assay_base`.answers AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 1, status IN ('error', 'refused'), 0, 0
        FROM `assay_base`.tool_calls AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 0, 0, verdict = 'positive', verdict = 'negative'
        FROM `assay_base`.feedback AS t FINAL
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
    FROM `assay_base`.session_parts FINAL
    GROUP BY project, session_id, revision, digest
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY project, session_id
),
judged AS
(
    SELECT project, assumeNotNull(a.session_id) AS session_id, count() AS scored, avg(s.faithfulness) AS faithfulness
    FROM `assay_base`.answers AS a FINAL
    INNER JOIN
    (
        SELECT event_id, argMax(metrics['faithfulness'], judged_at) AS faithfulness
        FROM `assay_base`.scores FINAL
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

CREATE VIEW IF NOT EXISTS `assay`.session_tool_calls ON CLUSTER '{cluster}'
(
    event_time DateTime64(3, 'UTC') COMMENT 'When the call began, by the log of the agent (UTC); the last change of the session if the log does not say.',
    session_at DateTime64(6, 'UTC') COMMENT 'When the session was last changed (UTC). Filter on it too: other sessions are skipped before their calls are read.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'Service of the session: the agent, unless the import named another.',
    source LowCardinality(String) COMMENT 'Agent whose log was read: opencode, claude-code, codex, gemini, otel, jsonl.',
    session_id String COMMENT 'Id of the session, by its agent.',
    parent_session_id Nullable(String) COMMENT 'Session whose agent started this one as a sub-agent; null for the sessions of people.',
    forked_from Nullable(String) COMMENT 'Session that this one began as a copy of; null without one.',
    turn UInt64 COMMENT 'Turn of the session in which the tool was called, from 1.',
    part UInt32 COMMENT 'Part of the session that holds the call, from 1.',
    place UInt64 COMMENT 'Position in that part, from 1. Calls of a session are in order by part and place.',
    tool_name String COMMENT 'The tool called.',
    args Nullable(String) COMMENT 'Arguments of the call, scrubbed: a JSON object as text; null if the call is too large for one part.',
    status Enum8('success' = 1, 'empty' = 2, 'partial' = 3, 'degraded' = 4, 'error' = 5, 'refused' = 6) COMMENT 'Result of the call, with the values of tool_calls.',
    error_kind Nullable(String) COMMENT 'Kind of error, if status is error or refused.',
    duration_ms Nullable(Float64) COMMENT 'Wall-clock time of the call, in milliseconds; null if the log does not say.',
    exit_code Nullable(Int64) COMMENT 'Exit code, if the tool ran a command.',
    call_id Nullable(String) COMMENT 'Id of the call by its agent; null without one.',
    child_session_id Nullable(String) COMMENT 'Session of the sub-agent that the call started; null without one.',
    executed_by LowCardinality(String) COMMENT 'agent, or user for a command that the person ran.',
    counted Bool COMMENT 'False for a call that is counted elsewhere: captured too, or copied from the session that this one is a fork of.',
    event_id UUID COMMENT 'The event_id of the part of the session that holds the call.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received that part (Redis clock, UTC, milliseconds). Retention counts from here.'
)
DEFINER = owner SQL SECURITY DEFINER
AS WITH newest AS
(
    SELECT project, session_id, revision, digest
    FROM `assay_base`.session_parts
    GROUP BY project, session_id, revision, digest
    HAVING uniqExact(part) = max(parts)
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY project, session_id
),
calls AS
(
    SELECT
        project, service, source, session_id, parent_session_id, forked_from, part, updated, event_id, created_at, place,
        CAST(
            if(
                item.continues IS NULL,
                (
                    if(item.function_call.name = '', item.function_response.name, item.function_call.name), item.function_call.args, item.turn,
                    item.call_id, item.status, item.error_kind, item.exit_code, item.executed_by, item.started_at, item.duration_ms,
                    item.child_session_id
                ),
                (
                    item.keys.function_response.name, NULL, item.keys.turn, item.keys.call_id, item.keys.status, item.keys.error_kind,
                    item.keys.exit_code, item.keys.executed_by, item.keys.started_at, item.keys.duration_ms, item.keys.child_session_id
                )
            ),
            'Tuple(tool_name String, args Nullable(String), turn UInt64, call_id Nullable(String), status String, error_kind Nullable(String),
            exit_code Nullable(Int64), executed_by String, started_at String, duration_ms Nullable(Float64), child_session_id Nullable(String))'
        ) AS call
    FROM
    (
        SELECT
            project, service, source, session_id, parent_session_id, forked_from, part, updated, event_id, created_at,
            JSONExtract(
                intermediate_events,
                'Array(Tuple(function_call Tuple(name String, args Nullable(String)), function_response Tuple(name String), turn UInt64,
                call_id Nullable(String), status String, error_kind Nullable(String), exit_code Nullable(Int64), executed_by String,
                started_at String, duration_ms Nullable(Float64), child_session_id Nullable(String), continues Nullable(String),
                keys Tuple(function_response Tuple(name String), turn UInt64, call_id Nullable(String), status String,
                error_kind Nullable(String), exit_code Nullable(Int64), executed_by String, started_at String,
                duration_ms Nullable(Float64), child_session_id Nullable(String))))'
            ) AS found
        FROM `assay_base`.session_parts FINAL
        WHERE (project, session_id, revision, digest) GLOBAL IN (SELECT project, session_id, revision, digest FROM newest)
    )
    ARRAY JOIN found AS item, arrayEnumerate(found) AS place
    WHERE (item.continues IS NULL AND item.turn > 0) OR (item.continues = '[]' AND item.keys.turn > 0)
),
captured AS
(
    SELECT project, assumeNotNull(t.session_id) AS session, tool_name, ifNull(t.call_id, '') AS call_id
    FROM `assay_base`.tool_calls AS t
    WHERE t.session_id IS NOT NULL AND assumeNotNull(t.session_id) GLOBAL IN (SELECT session_id FROM `assay_base`.session_parts)
),
origins AS
(
    SELECT
        project, session_id AS session, ifNull(call.call_id, '') AS call_id,
        if(call_id = '', (call.turn, call.tool_name, cityHash64(call.args)), (0, '', 0)) AS content
    FROM calls
    WHERE session_id GLOBAL IN (SELECT assumeNotNull(forked_from) FROM `assay_base`.session_parts WHERE forked_from IS NOT NULL)
)
SELECT
    ifNull(parseDateTime64BestEffortOrNull(c.call.started_at, 3, 'UTC'), toDateTime64(c.updated, 3, 'UTC')) AS event_time,
    c.updated AS session_at, c.project AS project, c.service AS service, c.source AS source, c.session_id AS session_id,
    c.parent_session_id AS parent_session_id, c.forked_from AS forked_from, c.call.turn AS turn, c.part AS part, toUInt64(c.place) AS place,
    c.call.tool_name AS tool_name, c.call.args AS args,
    CAST(
        if(c.call.status IN ('empty', 'partial', 'degraded', 'error', 'refused'), c.call.status, 'success'),
        'Enum8(\'success\' = 1, \'empty\' = 2, \'partial\' = 3, \'degraded\' = 4, \'error\' = 5, \'refused\' = 6)'
    ) AS status,
    c.call.error_kind AS error_kind, c.call.duration_ms AS duration_ms, c.call.exit_code AS exit_code, c.call.call_id AS call_id,
    c.call.child_session_id AS child_session_id, if(c.call.executed_by = 'user', 'user', 'agent') AS executed_by,
    CAST(
        NOT (
            (c.project, c.session_id, tool_name) GLOBAL IN (SELECT project, session, tool_name FROM captured)
            OR (call_id IS NOT NULL
                AND (c.project, c.session_id, ifNull(call_id, '')) GLOBAL IN (SELECT project, session, call_id FROM captured WHERE call_id != ''))
            OR (c.forked_from IS NOT NULL AND (
                c.project, ifNull(c.forked_from, ''), ifNull(call_id, ''),
                if(call_id IS NULL, (turn, tool_name, cityHash64(args)), (0, '', 0))
            ) GLOBAL IN (SELECT project, session, call_id, content FROM origins))
        ),
        'Bool'
    ) AS counted,
    c.event_id AS event_id, c.created_at AS created_at
FROM calls AS c
COMMENT 'Tool calls inside imported sessions, unrolled from the newest revision of each that is stored whole.';

CREATE OR REPLACE VIEW `assay`.sessions ON CLUSTER '{cluster}'
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
    rubric_score Nullable(Float64) COMMENT 'Share of the items of its rubric that the session meets, by the latest judge; null if it was not scored.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received its latest event (Redis clock, UTC, milliseconds).'
)
DEFINER = owner SQL SECURITY DEFINER
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
        FROM `assay_base`.candidates AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 1, 0, 0, 0, 0
        FROM `assay_base`.answers AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 1, status IN ('error', 'refused'), 0, 0
        FROM `assay_base`.tool_calls AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 0, 0, verdict = 'positive', verdict = 'negative'
        FROM `assay_base`.feedback AS t FINAL
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
    FROM `assay_base`.session_parts FINAL
    GROUP BY project, session_id, revision, digest
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY project, session_id
),
judged AS
(
    SELECT project, assumeNotNull(a.session_id) AS session_id, count() AS scored, avg(s.faithfulness) AS faithfulness
    FROM `assay_base`.answers AS a FINAL
    INNER JOIN
    (
        SELECT event_id, argMax(metrics['faithfulness'], judged_at) AS faithfulness
        FROM `assay_base`.scores FINAL
        WHERE status = 'scored' AND mapContains(metrics, 'faithfulness')
        GROUP BY event_id
    ) AS s USING (event_id)
    WHERE a.session_id IS NOT NULL
    GROUP BY project, session_id
),
rubrics AS
(
    SELECT project, assumeNotNull(t.session_id) AS session_id, argMax(metrics['rubric_score'], judged_at) AS rubric_score, 1 AS has_rubric
    FROM `assay_base`.scores AS t FINAL
    WHERE t.session_id IS NOT NULL AND status = 'scored' AND mapContains(metrics, 'rubric_score')
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
    if(j.scored = 0, NULL, j.faithfulness) AS faithfulness, if(r.has_rubric = 1, r.rubric_score, NULL) AS rubric_score,
    greatest(i.created_at, c.created_at) AS created_at
FROM imported AS i
FULL JOIN captured AS c ON i.project = c.project AND i.session_id = c.session_id
LEFT JOIN judged AS j ON j.project = if(i.session_id != '', i.project, c.project) AND j.session_id = if(i.session_id != '', i.session_id, c.session_id)
LEFT JOIN rubrics AS r ON r.project = if(i.session_id != '', i.project, c.project) AND r.session_id = if(i.session_id != '', i.session_id, c.session_id)
COMMENT 'Sessions: one row for each, imported or known from captured events. A session with complete = false is still arriving.';

CREATE OR REPLACE VIEW `assay`.judging_by_day ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day of the answers or sessions (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    fingerprint LowCardinality(String) COMMENT 'The judge.',
    backend LowCardinality(String) COMMENT 'Who judged.',
    kind LowCardinality(String) COMMENT 'answer or session: of which all the counts are.',
    answers UInt64 COMMENT 'Answers (or sessions) that the judge saw, sampled or not.',
    sampled UInt64 COMMENT 'Answers that were to be judged.',
    base UInt64 COMMENT 'Those of them in the unbiased base stream.',
    scored UInt64 COMMENT 'Answers with a score.',
    abstained UInt64 COMMENT 'Answers that make no claim to judge.',
    no_context UInt64 COMMENT 'Answers without a passage to judge them by.',
    judge_error UInt64 COMMENT 'Answers that the judge failed on.',
    skipped_budget UInt64 COMMENT 'Answers passed over because the budget was used up.',
    coverage Float64 COMMENT 'Share of sampled answers that ended with a score, an abstention or no context: the rest is missing. 1 when none was sampled.',
    checks_failed UInt64 COMMENT 'Answers that failed a check of layer 1.',
    cost_usd Float64 COMMENT 'What judging cost, in US dollars.'
)
DEFINER = owner SQL SECURITY DEFINER
AS SELECT
    toDate(event_time, 'UTC') AS day, s.project AS project, s.fingerprint AS fingerprint, any(s.backend) AS backend,
    if(s.session_id IS NULL, 'answer', 'session') AS kind, count() AS answers,
    countIf(status != 'not_sampled') AS sampled, countIf(s.base AND status != 'not_sampled') AS base,
    countIf(status = 'scored') AS scored, countIf(status = 'abstained') AS abstained, countIf(status = 'no_context') AS no_context,
    countIf(status = 'judge_error') AS judge_error, countIf(status = 'skipped_budget') AS skipped_budget,
    if(sampled = 0, 1, (scored + abstained + no_context) / sampled) AS coverage,
    countIf(arrayExists(passed -> NOT passed, mapValues(checks))) AS checks_failed, sum(s.cost_usd) AS cost_usd
FROM `assay_base`.scores AS s FINAL
GROUP BY day, project, fingerprint, kind
COMMENT 'How much of the traffic was judged, by day, project and judge, and how it ended.';

CREATE OR REPLACE VIEW `assay`.quality_by_day ON CLUSTER '{cluster}'
(
    day Date COMMENT 'Day of the answers (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    metric LowCardinality(String) COMMENT 'What was measured, in [0, 1].',
    fingerprint LowCardinality(String) COMMENT 'The judge. Numbers of different judges cannot be compared.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.',
    n UInt64 COMMENT 'Answers of the base stream that were scored.',
    mean Float64 COMMENT 'Mean of the metric, as the judge says (raw).',
    mean_low Float64 COMMENT 'Lower end of its 95 % interval, which is not empty even if all values are equal.',
    mean_high Float64 COMMENT 'Upper end of its 95 % interval.',
    threshold Nullable(Float64) COMMENT 'An answer counts as good from this value on; null without a calibration.',
    raw_rate Nullable(Float64) COMMENT 'Share of good answers, as the judge says (raw); null without a calibration.',
    ppi_rate Nullable(Float64) COMMENT 'Share of good answers, corrected for what the judge gets wrong (prediction-powered inference); null without a calibration.',
    ppi_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    ppi_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    labels Nullable(UInt64) COMMENT 'Human labels behind the correction.',
    kappa Nullable(Float64) COMMENT 'Agreement of judge and people beyond chance.'
)
DEFINER = owner SQL SECURITY DEFINER
AS WITH
    calibrated AS
    (
        SELECT project, metric, fingerprint, threshold, labels, kappa, rectifier, rectifier_variance
        FROM `assay_base`.calibrations FINAL
        ORDER BY calibrated_at DESC
        LIMIT 1 BY project, metric, fingerprint
    ),
    judged AS
    (
        SELECT
            toDate(event_time, 'UTC') AS judged_day, s.project AS judged_project, measured.1 AS judged_metric,
            s.fingerprint AS judged_by, s.backend AS judged_backend, measured.2 AS value, 1 / base_probability AS weight
        FROM `assay_base`.scores AS s FINAL
        ARRAY JOIN arrayZip(mapKeys(metrics), mapValues(metrics)) AS measured
        WHERE s.base AND s.status = 'scored'
    ),
    days AS
    (
        SELECT
            judged_day, judged_project, judged_metric, judged_by, any(judged_backend) AS judged_backend, count() AS scored,
            sum(weight * value) / sum(weight) AS middle,
            sum(weight) * sum(weight) / sum(weight * weight) AS size,
            greatest(0, sum(weight * weight * value * value) - 2 * middle * sum(weight * weight * value)
                + middle * middle * sum(weight * weight)) / pow(sum(weight), 2) * size / (size - 1) AS middle_variance,
            min(value) = max(value) AS alike, 3.8416 / size AS pull,
            if(alike, (middle + pull / 2) / (1 + pull), middle) AS centre,
            1.96 * if(alike, sqrt(greatest(0, middle * (1 - middle) + pull / 4) / size) / (1 + pull), sqrt(middle_variance)) AS half,
            any(c.labels) AS human, any(c.threshold) AS limit_of_good, any(c.kappa) AS agreement,
            any(c.rectifier) AS correction, any(c.rectifier_variance) AS correction_variance,
            sum(weight * (value >= c.threshold)) / sum(weight) AS rate,
            sum(weight * weight * pow((value >= c.threshold), 2)) - 2 * rate * sum(weight * weight * (value >= c.threshold))
                + rate * rate * sum(weight * weight) AS rate_squares,
            if(scored > 1, greatest(0, rate_squares) / pow(sum(weight), 2) * size / (size - 1), 0.25)
                + correction_variance / nullIf(human, 0) AS variance
        FROM judged
        LEFT JOIN calibrated AS c ON c.project = judged_project AND c.metric = judged_metric AND c.fingerprint = judged_by
        GROUP BY judged_day, judged_project, judged_metric, judged_by
    )
SELECT
    judged_day AS day, judged_project AS project, judged_metric AS metric, judged_by AS fingerprint, judged_backend AS backend,
    scored AS n, middle AS mean, greatest(0, centre - half) AS mean_low, least(1, centre + half) AS mean_high,
    if(human > 0, limit_of_good, NULL) AS threshold, if(human > 0, rate, NULL) AS raw_rate,
    if(human > 0, least(1, greatest(0, rate + correction)), NULL) AS ppi_rate,
    if(human > 0, least(1, greatest(0, rate + correction - 1.96 * sqrt(variance))), NULL) AS ppi_low,
    if(human > 0, least(1, greatest(0, rate + correction + 1.96 * sqrt(variance))), NULL) AS ppi_high,
    if(human > 0, human, NULL) AS labels, if(human > 0, agreement, NULL) AS kappa
FROM days
COMMENT 'Quality by day, project, metric and judge: the raw mean, and where there are human labels the corrected share of good answers.';

ALTER TABLE `assay_base_local`.candidates ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.answers ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.feedback ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.tool_calls ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.server_events ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.session_parts ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.capture_failures ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.scores ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.labels ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.rollup_minute ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.rollup_hour ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.rollup_day ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.eval_runs ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.eval_results ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.eval_outcomes ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.contradiction_runs ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.contradiction_pairs ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

ALTER TABLE `assay_base_local`.contradiction_labels ON CLUSTER '{cluster}' MODIFY TTL toDateTime(least(toUnixTimestamp(created_at) + 86400 * 90, 4294967295), 'UTC');

INSERT INTO `assay_base`.watermarks (shard, watermark) VALUES (0, 0);

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (1, '0001_tables.sql', '5e405385731f3e78c8e91e358920f1166b07521f6063551286d83a5245e60599');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (2, '0002_views.sql', '0052b2e89e98d80e520443981e90fdacea12e7cf7b468401f11a318f263b6bd6');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (3, '0003_rollups.sql', 'af14e028898c145891e5a02ff6c5e7cdbe30a1215508ca02211293873e041088');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (4, '0004_scores.sql', '8ae1c5de9202e8514fef13ce24ac4d38b89098c4896d88104e88f57092993928');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (5, '0005_alerts.sql', 'c38efae894696cb450b0d2aca9441523ad5a4579dbc8dd8222def56f16d4acf0');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (6, '0006_policy.sql', '7cd19d7d3af47323d2a417aa42e2196441f7ce9687ede7ac97c50a6ba19beeb0');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (7, '0007_quality.sql', '89460996678bd5f0022e58b061b528df358df6f8216d781a03f68969d20c157c');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (8, '0008_evals.sql', '786820627eeeb97aceacbccd7545dd4745ce21b9d8fe58dac2880280555513f7');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (9, '0009_insert_deduplication.sql', '55b28fa0e805aaa73f4e8c4ef81b33a31ecdc590665d1120d36af82d2677c77f');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (10, '0010_rollups_hold.sql', 'bdbad34a0e11ff7dc4adbd23507b4bd326140d04a264279b423ddab4e69a441a');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (11, '0011_claim_verdicts.sql', '8514e6442ec58906deb13fd52e098f321968e7550b6f1aafb3a9262ca8e41d68');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (12, '0012_judge_backends.sql', 'ddc4be1bb3f97d2a1b8454740edcd6a12dd019650bbb6f48dfcf985207f05827');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (13, '0013_operations_audit.sql', '152066959cb83692ec4cd6c3662de91d3a2bff16824a75191d8ebe88604396d3');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (14, '0014_agents.sql', 'de247aa213657365732e21e4d74a3285fc123cf345772518085eeb639d208091');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (15, '0015_tool_rollups.sql', '23491e7fba8e90e19ca168d062a061f9bca99ad90985fc3fb1ee0b309ad3a03c');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (16, '0016_session_tools.sql', 'dc27bd6845e257180d4e6b5ae124dca5375e335ed32e6c1ef4363a98fac5d6cf');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (17, '0017_latency_codec.sql', '1d838dfac6a301586c0496f43f108ef80156ac59a25400b68af9660ca3d014f8');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (18, '0018_session_scores.sql', 'b223adee446b6bc1bbfcf121baa0dddfbd8dc5cec25f369517650430e06e66fe');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (19, '0019_rollup_day.sql', '1269a38df7c16ea9e4243d32a2099b245891e2b72032bf2f04aaeb8dbaf3b097');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (20, '0020_gateway_fields.sql', 'e886de21192867bd573e20c6cace6a246c062108491547ecbb61b3195c8fc237');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (21, '0021_labels.sql', '01b912417402c7b5cf08fd712af8af21368f38a396ed21738f05c9f4939dc4d0');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (22, '0022_audit_log.sql', 'bf1f7098db9246686f00d31ec9291915e0c30e6ab71173532b0869cb16a0194e');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (23, '0023_events.sql', '6228277752137ce3acd0976c123affd33c9de44ef2b907cbd20fa478267b3ed1');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (24, '0024_contradictions.sql', '3b682be03db0be601603e4d71032784ffabe2a67b2e729c4ce60d068acfbec6d');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (25, '0025_rollup_repair.sql', 'e7b0580d29a80566f9c0a1db1061fe86d488fd95d0a8289beba4792b6902ea00');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (26, '0026_contradiction_ends.sql', '088ee583460729e3675cfdfb947b5cbb9d0b16a4f5781a305ac4789b8eed104f');

INSERT INTO `assay_base`.schema_migrations (version, name, checksum) VALUES (27, '0027_quality_intervals.sql', '1f405a016c33eba5acdf5340f7e26602bc6d98e43b87c529ac81b25184b25e95');
