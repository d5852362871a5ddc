-- What the judge thinks of answers, and what it was calibrated against.
--
-- A score's key is the answer and the judge (fingerprint). Unlike an event it may be replaced: an answer that was passed over for want of
-- budget and is judged later gets the later row, so ver is judged_at. A redelivered document is the same row again.

CREATE TABLE IF NOT EXISTS ${base}.scores
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
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMMDD(event_time)
ORDER BY (project, event_time, event_id, fingerprint)
SETTINGS non_replicated_deduplication_window = 1000, materialize_ttl_recalculate_only = 1
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

-- One row for each run of `assay judge calibrate` and metric. Kept for good: there are few.
CREATE TABLE IF NOT EXISTS ${base}.calibrations
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
ENGINE = ReplacingMergeTree(ver)
ORDER BY (project, metric, fingerprint, calibrated_at, calibration_id)
COMMENT 'How far the judge agrees with people: one row for each calibration and metric.';

CREATE VIEW IF NOT EXISTS ${views}.scores
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, stored_at
FROM ${base}.scores FINAL
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

CREATE VIEW IF NOT EXISTS ${views}.calibrations
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    calibration_id, calibrated_at, project, metric, fingerprint, threshold, labels, true_positives, false_negatives, false_positives,
    true_negatives, kappa, tpr, tpr_low, tpr_high, tnr, tnr_low, tnr_high, rectifier, rectifier_variance, pages
FROM ${base}.calibrations FINAL
COMMENT 'How far the judge agrees with people: one row for each calibration and metric.';

CREATE VIEW IF NOT EXISTS ${views}.judge_spend
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    toDate(judged_at, 'UTC') AS day, project, backend, model, fingerprint,
    countIf(status IN ('scored', 'abstained', 'judge_error')) AS judged, countIf(status = 'skipped_budget') AS skipped_budget,
    sum(scores.cost_usd) AS cost_usd, sum(scores.input_tokens) AS input_tokens, sum(scores.output_tokens) AS output_tokens
FROM ${base}.scores AS scores FINAL
WHERE status != 'not_sampled'
GROUP BY day, project, backend, model, fingerprint
COMMENT 'What judging costs, by day, project and judge.';
