-- The base tables. Services write them; people and programs read the views of 0002, which show each event once.
--
-- Exactly once: every table is a ReplacingMergeTree whose sorting key and partition are pure functions of the event itself
-- (event_id is a UUIDv7, event_time is the time inside it), so a redelivered event always meets its first copy. ver makes the
-- earliest arrival win: id and created_at stay what an earlier export said. event_time and ver are MATERIALIZED, so that no writer can
-- get them wrong.
--
-- Sorting key: project first, because people and row policies filter by project and time, and neighbours of one project compress
-- better. Questions about all projects in an hour still skip most of a day, since projects are few and each is sorted by time.
-- Point reads by event_id should carry the time inside it; without it the bloom filter finds the granules.
--
-- Constraints repeat the limits of the contract: what breaks one is refused by the engine too, never cut short.
-- Codecs are stated because the engine's default one changes with the size of a part.
-- materialize_ttl_recalculate_only: a change of retention rewrites no data. Retention itself is set by `assay migrate` from settings.
-- non_replicated_deduplication_window: an insert repeated under its token writes nothing. It saves work; the guarantee is above.

CREATE DATABASE IF NOT EXISTS ${base};

CREATE DATABASE IF NOT EXISTS ${views};

CREATE TABLE IF NOT EXISTS ${base}.candidates
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
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Captured retrievals: what was asked and which chunks came back.';

CREATE TABLE IF NOT EXISTS ${base}.answers
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
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Captured answers, with the passages they were given and the citations they made.';

CREATE TABLE IF NOT EXISTS ${base}.feedback
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
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Verdicts of people on earlier events.';

-- Failures carry no time of their own that every redelivery shares, so they are sorted by their key alone; there are few of them.
CREATE TABLE IF NOT EXISTS ${base}.capture_failures
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
ENGINE = ReplacingMergeTree(ver)
ORDER BY failure_id
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'What could not be stored, and why. Never the content.';

-- The greatest watermark of a shard wins, whatever the order of writes.
CREATE TABLE IF NOT EXISTS ${base}.watermarks
(
    shard UInt8 COMMENT 'Shard of the streams, from 0.' CODEC(ZSTD(1)),
    watermark UInt64 COMMENT 'Every captured entry of the shard with an id up to this is stored or recorded as a failure. Never goes back.' CODEC(ZSTD(1)),
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the writer last moved it (UTC, milliseconds).' CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(watermark)
ORDER BY shard
COMMENT 'How far each shard of the log is stored.';

CREATE TABLE IF NOT EXISTS ${base}.schema_migrations
(
    version UInt32 COMMENT 'Number of the migration.' CODEC(ZSTD(1)),
    name String COMMENT 'Its file.' CODEC(ZSTD(1)),
    checksum String COMMENT 'SHA-256 of its text.' CODEC(ZSTD(1)),
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When it was applied (UTC, milliseconds).' CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (version, checksum)
COMMENT 'Which changes of the schema have been applied.';

