-- Evaluation runs, their results by case, and how nightly evaluations ended. They hold names, ids and numbers, no question and no answer.
--
-- Exactly once: a run's identity is made of its name, start and configuration, so a run that is stored again, or goes on after it was
-- stopped, replaces its rows. Results are written before the run they belong to: a run that is seen has all of its results.
-- All rows of a run bear its start, so that retention lets go of all of it at once.

CREATE TABLE IF NOT EXISTS ${base}.eval_runs
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
ENGINE = ReplacingMergeTree(ver)
ORDER BY (project, run_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'Evaluation runs: one row each.';

CREATE TABLE IF NOT EXISTS ${base}.eval_results
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
ENGINE = ReplacingMergeTree(ver)
ORDER BY (project, run_id, case_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'What each case of an evaluation run came to: one row for each run and case.';

CREATE TABLE IF NOT EXISTS ${base}.eval_outcomes
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
ENGINE = ReplacingMergeTree(ver)
ORDER BY (project, attempt_id)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'How nightly evaluations ended: one row for each attempt.';

CREATE VIEW IF NOT EXISTS ${views}.eval_runs
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, name, project, label, dataset, dataset_version, dataset_fingerprint, target, code_version,
    judge, seed, config, started_at, completed_at, cases, errored, means, latency_ms, details, stored_at
FROM ${base}.eval_runs FINAL
COMMENT 'Evaluation runs: one row each.';

CREATE VIEW IF NOT EXISTS ${views}.eval_results
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, case_id, project, place, query_type, retrieved, latency_ms, metrics, error, tries, cluster,
    weight, started_at, details, stored_at
FROM ${base}.eval_results FINAL
COMMENT 'What each case of an evaluation run came to: one row for each run and case.';

CREATE VIEW IF NOT EXISTS ${views}.eval_outcomes
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, attempt_id, evaluation, project, started_at, ended_at, outcome, run_id, run_name, baseline, cases,
    errored, failed_metrics, cost_usd, detail, alerts, stored_at
FROM ${base}.eval_outcomes FINAL
COMMENT 'How nightly evaluations ended: one row for each attempt.';

-- What people think, beside what they judged. The two sides of the join are sharded by ids of their own.
CREATE VIEW IF NOT EXISTS ${views}.feedback_by_day
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH
    judged AS
    (
        SELECT event_id AS judged_id, service AS judged_service, 'answer' AS judged_kind
        FROM ${base}.answers FINAL
        WHERE event_id IN (SELECT target_event_id FROM ${base}.feedback)
        UNION ALL
        SELECT event_id AS judged_id, service AS judged_service, 'retrieval' AS judged_kind
        FROM ${base}.candidates FINAL
        WHERE event_id IN (SELECT target_event_id FROM ${base}.feedback)
    )
SELECT
    toDate(f.event_time, 'UTC') AS day, f.project AS project,
    if(judged_kind = '', f.service, judged_service) AS service, if(judged_kind = '', 'unknown', judged_kind) AS kind,
    countIf(verdict = 'positive') AS positive, countIf(verdict = 'negative') AS negative, uniqExact(target_event_id) AS events,
    countIf(notEmpty(ifNull(text, ''))) AS with_text, uniqExact(user_hash) AS people
FROM ${base}.feedback AS f FINAL
LEFT JOIN judged ON judged_id = f.target_event_id
GROUP BY day, project, service, kind
COMMENT 'What people think of answers and retrievals, by day, project, service and kind.';
