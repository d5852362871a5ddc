-- The comments of column backend name every judge there is. No data changes.

ALTER TABLE ${base}.scores COMMENT COLUMN IF EXISTS backend 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.';

CREATE OR REPLACE VIEW ${views}.scores
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, verdicts, stored_at
FROM ${base}.scores FINAL
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';

CREATE OR REPLACE VIEW ${views}.quality_by_day
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH
    calibrated AS
    (
        SELECT project, metric, fingerprint, threshold, labels, kappa, rectifier, rectifier_variance
        FROM ${base}.calibrations FINAL
        ORDER BY calibrated_at DESC
        LIMIT 1 BY project, metric, fingerprint
    ),
    judged AS
    (
        SELECT
            toDate(event_time, 'UTC') AS judged_day, s.project AS judged_project, measured.1 AS judged_metric,
            s.fingerprint AS judged_by, s.backend AS judged_backend, measured.2 AS value, 1 / base_probability AS weight
        FROM ${base}.scores AS s FINAL
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
