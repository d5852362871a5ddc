-- Audit records of operations that delete stored data or change what it means. They hold names, ranges and numbers, nothing captured, and
-- are few: retention leaves them.
--
-- Append-only: a plain MergeTree, so that no insert replaces a row. An operation has a record of its start and one of its end. A record
-- that is stored twice (sent again after a failure) is shown once: of several copies the views show the first, by the store's clock.
-- The owner of the schema cannot delete or change a row either, so a later migration of this table can only add columns.
-- In a cluster all records of an operation are on one shard, so that the views can join them there.

CREATE TABLE IF NOT EXISTS ${base}.operations_audit
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
ENGINE = MergeTree
ORDER BY (operation_id, outcome)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Audit records of operations: the start of each, and its end.';

CREATE VIEW IF NOT EXISTS ${views}.operations_audit
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, operation_id, outcome, at, operation, actor, identity, host, through, target,
    planned, changed, comment, error_kind, version, stored_at
FROM ${base}.operations_audit
ORDER BY stored_at
LIMIT 1 BY operation_id, outcome
COMMENT 'Audit records of operations: the start of each, and its end. The view operations has both in one row.';

CREATE VIEW IF NOT EXISTS ${views}.operations
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
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
FROM ${base}.operations_audit AS r
GROUP BY r.operation_id
COMMENT 'Operations that deleted stored data or changed what it means: who, what range, why. One row for each attempt.';
