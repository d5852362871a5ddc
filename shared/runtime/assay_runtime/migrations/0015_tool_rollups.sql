-- Rollups count tool calls, by tool and status, and the events of tool servers. The rest is as in 0003 and 0010.

ALTER TABLE ${base}.rollup_minute
    MODIFY COLUMN kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6),
    ADD COLUMN IF NOT EXISTS statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)) AFTER pii_families;

ALTER TABLE ${base}.rollup_minute COMMENT COLUMN IF EXISTS without_result 'Retrievals that found nothing, and tool calls whose status is empty.';

ALTER TABLE ${base}.rollup_minute COMMENT COLUMN IF EXISTS tool 'The operation that retrieved, or the tool called; empty for other kinds.';

ALTER TABLE ${base}.rollup_hour
    MODIFY COLUMN kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6),
    ADD COLUMN IF NOT EXISTS statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)) AFTER pii_families;

ALTER TABLE ${base}.rollup_hour COMMENT COLUMN IF EXISTS without_result 'Retrievals that found nothing, and tool calls whose status is empty.';

ALTER TABLE ${base}.rollup_hour COMMENT COLUMN IF EXISTS tool 'The operation that retrieved, or the tool called; empty for other kinds.';

CREATE OR REPLACE VIEW ${base}.rollup_minute_source
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, service, tool, minute,
    events, failures, incidents, failure_reasons, without_result, positive, negative, latency_ms_sum, latency_ms_max,
    mapFromArrays(arrayDistinct(latencies), arrayMap(us -> countEqual(latencies, us), arrayDistinct(latencies))) AS latency_us,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, fingerprint, created_at
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
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
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
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
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
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
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
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(failure_id, t.created_at))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.capture_failures AS t FINAL
    GROUP BY project, service, minute
    UNION ALL
    SELECT
        'tool_call' AS kind, project, service, toString(tool_name) AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        countIf(status = 'empty') AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        sum(least(duration_ms, 1e15)) AS latency_ms_sum, max(duration_ms) AS latency_ms_max,
        arraySort(
            groupArray(toUInt32(round(1000 * pow(1.02, round(log(greatest(least(duration_ms, 3600000), 0.001)) / log(1.02))))))
        ) AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        sumMap(map(CAST(toString(status), 'LowCardinality(String)'), toUInt64(1))) AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.tool_calls AS t FINAL
    GROUP BY project, service, tool, minute
    UNION ALL
    SELECT
        'server_event' AS kind, project, service, '' AS tool, toStartOfMinute(event_time) AS minute,
        count() AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons,
        toUInt64(0) AS without_result, toUInt64(0) AS positive, toUInt64(0) AS negative,
        toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST([], 'Array(UInt32)') AS latencies,
        toUInt64(0) AS scored,
        toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min,
        countIf(notEmpty(t.pii_families)) AS pii_events, sumMap(t.pii_families) AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses,
        sum(reinterpretAsInt64(cityHash64(id))) AS fingerprint, max(t.created_at) AS created_at
    FROM ${base}.server_events AS t FINAL
    GROUP BY project, service, tool, minute
)
COMMENT 'What rollup_minute is to hold, counted from the tables when read.';

CREATE OR REPLACE VIEW ${base}.rollup_minute_stale
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT least(max(refreshed_at), now64(3, 'UTC')) FROM ${base}.rollup_minute) - toIntervalMinute(2) AS since
SELECT DISTINCT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, minute
FROM
(
    SELECT 'retrieval' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.candidates WHERE stored_at >= since
    UNION ALL
    SELECT 'answer' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.answers WHERE stored_at >= since
    UNION ALL
    SELECT 'feedback' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.feedback WHERE stored_at >= since
    UNION ALL
    SELECT 'tool_call' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.tool_calls WHERE stored_at >= since
    UNION ALL
    SELECT 'server_event' AS kind, project, toStartOfMinute(event_time) AS minute FROM ${base}.server_events WHERE stored_at >= since
    UNION ALL
    SELECT 'failure' AS kind, project, toStartOfMinute(created_at) AS minute
    FROM ${base}.capture_failures
    WHERE failure_id IN (SELECT failure_id FROM ${base}.capture_failures WHERE stored_at >= since)
)
COMMENT 'Minutes into which something was stored since the last refresh.';

CREATE OR REPLACE VIEW ${base}.rollup_minute_differing
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT CAST(kind, 'Enum8(\'retrieval\' = 1, \'answer\' = 2, \'feedback\' = 3, \'failure\' = 4, \'tool_call\' = 5, \'server_event\' = 6)') AS kind, project, hour
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
    SELECT 'tool_call' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM ${base}.tool_calls FINAL
    GROUP BY project, hour
    UNION ALL
    SELECT 'server_event' AS kind, project, toStartOfHour(event_time) AS hour, sum(reinterpretAsInt64(cityHash64(id))) AS difference
    FROM ${base}.server_events FINAL
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
        statuses, fingerprint, created_at, at AS refreshed_at
    FROM ${base}.rollup_minute_source
    WHERE (kind, project, minute) IN (SELECT kind, project, minute FROM ${base}.rollup_minute_stale)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
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
        statuses, fingerprint, created_at, at AS refreshed_at
    FROM ${base}.rollup_minute_source
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM ${base}.rollup_minute_differing)
    UNION ALL
    SELECT
        kind, project, service, tool, minute, toUInt64(0) AS events, toUInt64(0) AS failures, toUInt64(0) AS incidents,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS failure_reasons, toUInt64(0) AS without_result,
        toUInt64(0) AS positive, toUInt64(0) AS negative, toFloat64(0) AS latency_ms_sum, toFloat64(0) AS latency_ms_max,
        CAST(map(), 'Map(UInt32, UInt64)') AS latency_us, toUInt64(0) AS scored, toFloat64(0) AS top_score_sum,
        CAST(NULL, 'Nullable(Float64)') AS top_score_min, toUInt64(0) AS pii_events,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS pii_families,
        CAST(map(), 'Map(LowCardinality(String), UInt64)') AS statuses, toInt64(0) AS fingerprint, created_at, at AS refreshed_at
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
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
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
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM ${base}.rollup_minute FINAL
    WHERE (kind, project, toStartOfHour(minute)) IN (SELECT kind, project, hour FROM ${base}.rollup_hour_differing)
    GROUP BY kind, project, service, tool, hour
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE OR REPLACE VIEW ${views}.rollup_minute
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    minute DateTime('UTC') COMMENT 'Start of the minute of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, minute, events, failures, incidents, failure_reasons, without_result,
    positive, negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, created_at, refreshed_at
FROM ${base}.rollup_minute FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by minute. A row is complete for its minute: add rows up over services, tools, kinds and minutes.';

CREATE OR REPLACE VIEW ${views}.rollup_hour
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).',
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.',
    failures UInt64 COMMENT 'Events that were lost for the tables.',
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.',
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.',
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.',
    positive UInt64 COMMENT 'Feedback that was positive.',
    negative UInt64 COMMENT 'Feedback that was negative.',
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.',
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.',
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.',
    p50_ms Nullable(Float64) COMMENT 'The 50th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p95_ms Nullable(Float64) COMMENT 'The 95th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    p99_ms Nullable(Float64) COMMENT 'The 99th percentile of latency in milliseconds, exact to 1 %; null without latencies.',
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.',
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.',
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.',
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.',
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.',
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.',
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    kind, project, service, tool, hour, events, failures, incidents, failure_reasons, without_result, positive,
    negative, latency_ms_sum, latency_ms_max, latency_us,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.5 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p50_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.95 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p95_ms,
    if(
        empty(latency_us),
        NULL,
        arrayFirst(
            (us, upto) -> upto >= 0.99 * arraySum(mapValues(latency_us)), mapKeys(latency_us), arrayCumSum(mapValues(latency_us))
        ) / 1000
    ) AS p99_ms,
    scored, top_score_sum, top_score_min, pii_events, pii_families, statuses, created_at, refreshed_at
FROM ${base}.rollup_hour FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by hour, added up from minutes.';
