-- Quality as people ask for it: by day, with intervals, and how much of the traffic was judged. Views over the scores, nothing stored.
--
-- Only answers of the base stream count, each with the inverse of its probability to be in it (Hajek): boosted samples would be biased.
-- Intervals are normal approximations at 95 %: rough below some thirty answers, which n tells.

CREATE VIEW IF NOT EXISTS ${views}.quality_by_day
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

CREATE VIEW IF NOT EXISTS ${views}.judging_by_day
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
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    toDate(event_time, 'UTC') AS day, s.project AS project, s.fingerprint AS fingerprint, any(s.backend) AS backend, count() AS answers,
    countIf(status != 'not_sampled') AS sampled, countIf(s.base AND status != 'not_sampled') AS base,
    countIf(status = 'scored') AS scored, countIf(status = 'abstained') AS abstained, countIf(status = 'no_context') AS no_context,
    countIf(status = 'judge_error') AS judge_error, countIf(status = 'skipped_budget') AS skipped_budget,
    if(sampled = 0, 1, (scored + abstained + no_context) / sampled) AS coverage,
    countIf(arrayExists(passed -> NOT passed, mapValues(checks))) AS checks_failed, sum(s.cost_usd) AS cost_usd
FROM ${base}.scores AS s FINAL
GROUP BY day, project, fingerprint
COMMENT 'How much of the traffic was judged, by day, project and judge, and how it ended.';
