-- Rollups that hold when the store's clock is set back, and when a latency or a score is absurd.
--
-- A later count replaces an earlier one by refreshed_at. So refreshed_at always rises, even while the clock of the store is behind the last
-- refresh; and what was stored since then is found although stored_at is behind it too.
-- A sum takes no value beyond 1e15: two values near the greatest float would make it infinite, which is no JSON and no number for an alert.
-- The hourly comparison counts rows anew that became infinite before this migration.

CREATE OR REPLACE VIEW ${base}.rollup_minute_source
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, service, tool, minute,
    events, failures, incidents, failure_reasons, without_result, positive, negative, latency_ms_sum, latency_ms_max,
    mapFromArrays(arrayDistinct(latencies), arrayMap(us -> countEqual(latencies, us), arrayDistinct(latencies))) AS latency_us,
    scored, top_score_sum, top_score_min, pii_events, pii_families, fingerprint, created_at
FROM
(
    SELECT
        'retrieval' AS kind, project, service, toString(tool_name) AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        countIf(empty(retrieved_chunk_ids)) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(latency_ms, 1e15)) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        countIf(notEmpty(retrieved_scores)) AS scored,
        sumIf(greatest(-1e15, least(retrieved_scores[1], 1e15)), notEmpty(retrieved_scores)) AS top_score_sum,
        minIf(toNullable(retrieved_scores[1]), notEmpty(retrieved_scores)) AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.candidates AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'answer' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(latency_ms, 1e15)) AS latency_ms_sum, max(latency_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(latency_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.answers AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'feedback' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, countIf(verdict = 'positive') AS positive, countIf(verdict = 'negative') AS negative,
        toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST([], 'Array(UInt32)') AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.feedback AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'failure' AS kind, project, service, '' AS tool, toStartOfMinute(t.created_at) AS minute,
        toUInt64(0) AS events, countIf(entry_id IS NOT NULL) AS failures, countIf(entry_id IS NULL) AS incidents,
        sumMap(map(CAST(toString(reason), 'LowCardinality(String)'), toUInt64(1))) AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST([], 'Array(UInt32)') AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        toUInt64(0) AS pii_events, CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families,
        sum(reinterpretAsInt64(cityHash64(failure_id, t.created_at))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.capture_failures AS t FINAL
    GROUP BY project, service, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';

CREATE OR REPLACE VIEW ${base}.rollup_minute_stale
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT least(max(refreshed_at), now64(3, 'UTC')) FROM ${base}.rollup_minute) - toIntervalMinute(2) AS since
SELECT DISTINCT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, minute
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.candidates WHERE stored_at >= since
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.answers WHERE stored_at >= since
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.feedback WHERE stored_at >= since
    UNION ALL
    SELECT 'failure' AS kind, project, toStartOfMinute(created_at) AS minute
    FROM ${base}.capture_failures
    WHERE failure_id IN (SELECT failure_id FROM ${base}.capture_failures WHERE stored_at >= since)
)
COMMENT 'Minutes into which something was stored since the last refresh.';

CREATE OR REPLACE VIEW ${base}.rollup_minute_differing
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4)') AS kind, project, hour
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM ${base}.candidates FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM ${base}.answers FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM ${base}.feedback FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        'failure' AS kind, project, toStartOfHour(created_at) AS hour,
        sum(reinterpretAsInt64(cityHash64(failure_id, created_at))) AS difference
    FROM ${base}.capture_failures FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT
        toString(kind) AS kind, project, toStartOfHour(minute) AS hour,
        toInt64(countIf(NOT isFinite(latency_ms_sum + top_score_sum))) - sum(fingerprint) AS difference
    FROM ${base}.rollup_minute FINAL
    GROUP BY kind, project, hour
)
GROUP BY kind, project, hour
HAVING sum(difference) != 0
COMMENT 'Hours of rollup_minute in which something else was counted than the tables hold. Reads all of both.';

DROP VIEW IF EXISTS ${base}.rollup_minute_refresh;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_minute_refresh
REFRESH EVERY 1 MINUTE APPEND TO ${base}.rollup_minute EMPTY
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM ${base}.rollup_minute) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        fingerprint, created_at, at AS refreshed_at
    FROM ${base}.rollup_minute_source
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM ${base}.rollup_minute_stale)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM ${base}.rollup_minute
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM ${base}.rollup_minute_stale)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM ${base}.rollup_minute_source
        WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM ${base}.rollup_minute_stale)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS ${base}.rollup_minute_repair;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_minute_repair
REFRESH EVERY 1 HOUR APPEND TO ${base}.rollup_minute EMPTY
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM ${base}.rollup_minute) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result, positive, negative,
        latency_ms_sum, latency_ms_max, latency_us, scored, top_score_sum, top_score_min, pii_events, pii_families,
        fingerprint, created_at, at AS refreshed_at
    FROM ${base}.rollup_minute_source
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM ${base}.rollup_minute_differing)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
    FROM ${base}.rollup_minute
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM ${base}.rollup_minute_differing)
      AND (kind, project, service, tool, minute) NOT IN
    (
        SELECT kind, project, service, tool, minute FROM ${base}.rollup_minute_source
        WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM ${base}.rollup_minute_differing)
    )
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS ${base}.rollup_hour_refresh;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_hour_refresh
REFRESH EVERY 1 MINUTE OFFSET 20 SECOND APPEND TO ${base}.rollup_hour EMPTY
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM ${base}.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM ${base}.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN
    (
        SELECT kind, project, toStartOfHour(minute)
        FROM ${base}.rollup_minute
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM ${base}.rollup_hour) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

DROP VIEW IF EXISTS ${base}.rollup_hour_repair;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_hour_repair
REFRESH EVERY 1 HOUR OFFSET 5 MINUTE APPEND TO ${base}.rollup_hour EMPTY
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM ${base}.rollup_hour) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toStartOfHour(minute) AS hour,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM ${base}.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM ${base}.rollup_hour_differing)
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;
