-- Intervals of days with few answers: one answer, or answers that all have the same value, had an interval without width, as if no other
-- answer could differ. Equal values have Wilson's interval at their effective number, and variances are those of a sample, as in
-- `assay_judge.calibration`.

CREATE OR REPLACE VIEW ${views}.quality_by_day
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
