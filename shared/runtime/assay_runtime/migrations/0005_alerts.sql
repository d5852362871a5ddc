-- Alerts: one row for each transition of an episode. They hold numbers and names, nothing captured, and are few: retention leaves them.
--
-- Exactly once: the sorting key is the episode and the transition's own id, so a redelivered transition meets its first copy. Copies of
-- one transition are the same, since its id is given in the atomic step that makes it; ver only makes the choice between them fixed.
-- In a cluster a whole episode is on one shard, so that open_episodes can tell there which transition is the last.

CREATE TABLE IF NOT EXISTS ${base}.alerts
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
ENGINE = ReplacingMergeTree(ver)
ORDER BY (alert_id, transition_id)
SETTINGS non_replicated_deduplication_window = 1000
COMMENT 'Transitions of alert episodes.';

CREATE VIEW IF NOT EXISTS ${views}.alerts
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, alert_id, transition_id, sequence, kind, state, previous, severity, project, service,
    metric, series, since, at, value, baseline, effect, `interval`, n, evidence, `group`, summary, query, acknowledge, stored_at
FROM ${base}.alerts FINAL
COMMENT 'Transitions of alert episodes, each once.';

CREATE VIEW IF NOT EXISTS ${views}.open_episodes
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, alert_id, transition_id, sequence, kind, state, previous, severity, project, service,
    metric, series, since, at, value, baseline, effect, `interval`, n, evidence, `group`, summary, query, acknowledge, stored_at
FROM
(
    SELECT * FROM ${base}.alerts FINAL ORDER BY sequence DESC LIMIT 1 BY alert_id
)
WHERE state IN ('warn', 'critical', 'recovering')
COMMENT 'The latest transition of every alert episode that is not resolved.';
