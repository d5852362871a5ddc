-- The audit log: one leaf of a Merkle tree for each tool call, server event, lost event and recorded operation.
--
-- Append-only. The sorting keys end with a hash, so that a row that is written again is one row after a merge, and a row with other content
-- stays visible to `assay audit verify` as a second one. Leaf hashes are never deleted; rows and disclosures may be.
-- A batch is written in this order: disclosures, rows, leaves. The leaves say how long the log is; what an interrupted write left behind
-- them is written again.

CREATE TABLE IF NOT EXISTS ${base}.audit_rows
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
ENGINE = ReplacingMergeTree
ORDER BY (log, leaf_index, leaf_hash)
SETTINGS non_replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Rows of the audit log.';

CREATE TABLE IF NOT EXISTS ${base}.audit_leaves
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
ENGINE = ReplacingMergeTree
ORDER BY (log, leaf_index, leaf_hash)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Leaf hashes of the audit log.';

CREATE TABLE IF NOT EXISTS ${base}.audit_disclosures
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.' CODEC(ZSTD(1)),
    leaf_index UInt64 COMMENT 'Place of the row in the log, from 0.' CODEC(Delta(8), ZSTD(1)),
    digest String COMMENT 'Its digest, which the row has in sd.' CODEC(ZSTD(1)),
    disclosure String COMMENT 'base64url of the JSON array of salt, name and value (RFC 9901).' CODEC(ZSTD(3)),
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.' CODEC(ZSTD(1)),
    created_at DateTime64(6, 'UTC') COMMENT 'The created_at of the row. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).' CODEC(Delta(8), ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (log, leaf_index, digest)
SETTINGS non_replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Values and salts of the fields that may be personal. A deleted one leaves every proof intact.';

CREATE TABLE IF NOT EXISTS ${base}.audit_checkpoints
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
ENGINE = ReplacingMergeTree
ORDER BY (log, size, root, note)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Signed checkpoints of the audit log.';

CREATE TABLE IF NOT EXISTS ${base}.audit_anchors
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
ENGINE = ReplacingMergeTree
ORDER BY (log, size, anchor, note, token)
SETTINGS non_replicated_deduplication_window = 0
COMMENT 'Checkpoints of the audit log that others have, with what they signed.';

CREATE VIEW IF NOT EXISTS ${views}.audit_rows
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    log, leaf_index, kind, source_id, created_at, project, service, server_session_id, duration_us, error_kind,
    pii_attempted, pii_blocked, late, place, id, occurred_at, source_connection_id, caller_id, tool_name, status,
    refusal_reason, cost_class, pii_categories, ast_shape_hash, rule_id, fingerprint, fingerprint_version, chain_hash,
    sd, leaf_hash, stored_at
FROM ${base}.audit_rows
COMMENT 'Rows of the audit log: who called which tool, what was refused, what was lost, what people changed. A row that was written twice may appear twice.';

CREATE VIEW IF NOT EXISTS ${views}.audit_leaves
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    log, leaf_index, leaf_hash, chain_hash, kind, source_id, place, stored_at
FROM ${base}.audit_leaves
COMMENT 'Leaf hashes of the audit log. They are never deleted.';

CREATE VIEW IF NOT EXISTS ${views}.audit_disclosures
(
    log LowCardinality(String) COMMENT 'The log: the origin in its checkpoints.',
    leaf_index UInt64 COMMENT 'Place of the row in the log, from 0.',
    digest String COMMENT 'Its digest, which the row has in sd.',
    disclosure String COMMENT 'base64url of the JSON array of salt, name and value (RFC 9901).',
    project LowCardinality(String) COMMENT 'The tenant; empty for an operation.',
    created_at DateTime64(6, 'UTC') COMMENT 'The created_at of the row. Retention counts from here.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When it was written (clock of the store, UTC, microseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    log, leaf_index, digest, disclosure, project, created_at, stored_at
FROM ${base}.audit_disclosures
COMMENT 'Values of personal fields of the audit log, with their salts, as far as they are not erased.';

CREATE VIEW IF NOT EXISTS ${views}.audit_checkpoints
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    log, size, root, note, edge, places, rotation, stored_at
FROM ${base}.audit_checkpoints
COMMENT 'Signed checkpoints of the audit log.';

CREATE VIEW IF NOT EXISTS ${views}.audit_anchors
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    log, size, anchor, kind, note, token, anchored_at, stored_at
FROM ${base}.audit_anchors
COMMENT 'Checkpoints of the audit log that others have, with what they signed.';
