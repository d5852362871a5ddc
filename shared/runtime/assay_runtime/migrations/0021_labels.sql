-- What people decide about captured events: labels that judges are calibrated against, and cases of golden datasets.
--
-- Append-only: plain MergeTrees, so that no insert replaces a row. A row that is stored twice (sent again after a failure) counts once: of
-- several copies the views show the first, by the store's clock, which cannot be inserted.

CREATE TABLE IF NOT EXISTS ${base}.labels
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
ENGINE = MergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (project, event_time, event_id, queue, labeller)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Labels of people on answers: every label that was given, changed or withdrawn.';

CREATE VIEW IF NOT EXISTS ${views}.labels
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
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
        FROM ${base}.labels
        ORDER BY stored_at
        LIMIT 1 BY label_id
    )
    ORDER BY stored_at DESC, label_id DESC
    LIMIT 1 BY project, queue, event_id, labeller
)
WHERE NOT withdrawn
COMMENT 'Labels of people on answers: the latest of each labeller for each answer and queue, without withdrawn ones.';

CREATE TABLE IF NOT EXISTS ${base}.dataset_cases
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
ENGINE = MergeTree
ORDER BY (project, dataset, case_id, version)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Cases of golden datasets, reviewed by people: every version of each case. Retention leaves them.';

CREATE VIEW IF NOT EXISTS ${views}.dataset_case_versions
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, project, dataset, case_id, version, event_id, query, expected_slugs, expected_chunk_ids, null_case, expected_answer,
    inclusion_probability, reviewer, at, retired, stored_at
FROM ${base}.dataset_cases
ORDER BY stored_at
LIMIT 1 BY project, dataset, case_id, version
COMMENT 'Cases of golden datasets: every version of each case, retired ones too.';

CREATE VIEW IF NOT EXISTS ${views}.dataset_cases
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, project, dataset, case_id, version, event_id, query, expected_slugs, expected_chunk_ids, null_case, expected_answer,
    inclusion_probability, reviewer, at, stored_at
FROM
(
    SELECT
        schema_version, project, dataset, case_id, version, event_id, query, expected_slugs, expected_chunk_ids, null_case,
        expected_answer, inclusion_probability, reviewer, at, retired, stored_at
    FROM ${base}.dataset_cases
    ORDER BY version DESC, stored_at
    LIMIT 1 BY project, dataset, case_id
)
WHERE NOT retired
COMMENT 'Cases of golden datasets: the latest version of each case, without retired ones.';

-- Which other events belong to the same trace, and where a question was asked before. A query has to name the same expressions:
-- assay_runtime/indexed.py. Parts that are stored already are read as before.

ALTER TABLE ${base}.candidates
    ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS question_bloom cityHash64(lowerUTF8(trimBoth(replaceRegexpAll(query, '[[:space:]]+', ' ')))) TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE ${base}.answers
    ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS question_bloom cityHash64(lowerUTF8(trimBoth(replaceRegexpAll(query, '[[:space:]]+', ' ')))) TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE ${base}.tool_calls ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE ${base}.server_events ADD INDEX IF NOT EXISTS trace_id_bloom substring(traceparent, 4, 32) TYPE bloom_filter(0.01) GRANULARITY 1;
