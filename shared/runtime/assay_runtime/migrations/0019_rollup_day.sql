-- Rollups by day, and hours that are read by the day instead of by the month.
--
-- A question about percentiles reads little else than histograms of latencies. A day's has hardly more buckets than an hour's, so a week of
-- days is a tenth of a week of hours. Buckets stay 2 % wide and add up exactly, so a percentile is as exact as before: to 1 %.
--
-- The wide rows of rollup_hour were indexed by 8192 of them or 10 MB, some 5000 rows: of a week, a question about a day read more than half.
-- Now it is by 256. The engine cannot change this in a table, so rollup_hour is created again. Its first refresh, which starts at once, counts
-- it from rollup_minute, which is kept as long.

DROP VIEW IF EXISTS ${base}.rollup_hour_refresh;

DROP VIEW IF EXISTS ${base}.rollup_hour_repair;

DROP TABLE IF EXISTS ${base}.rollup_hour;

CREATE TABLE IF NOT EXISTS ${base}.rollup_hour
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.' CODEC(ZSTD(1)),
    hour DateTime('UTC') COMMENT 'Start of the hour of event_time, for failures of created_at (UTC).' CODEC(Delta(4), ZSTD(1)),
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.' CODEC(T64, ZSTD(1)),
    failures UInt64 COMMENT 'Events that were lost for the tables.' CODEC(ZSTD(1)),
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.' CODEC(ZSTD(1)),
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.' CODEC(ZSTD(1)),
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.' CODEC(ZSTD(1)),
    positive UInt64 COMMENT 'Feedback that was positive.' CODEC(ZSTD(1)),
    negative UInt64 COMMENT 'Feedback that was negative.' CODEC(ZSTD(1)),
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.' CODEC(ZSTD(1)),
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.' CODEC(ZSTD(1)),
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.' CODEC(T64),
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.' CODEC(ZSTD(1)),
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.' CODEC(ZSTD(1)),
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.' CODEC(ZSTD(1)),
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.' CODEC(ZSTD(1)),
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)),
    fingerprint Int64 COMMENT 'Sum of hashes of the copies that were counted: tells whether exactly these are in the tables.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(refreshed_at) COMMENT 'The latest count is shown.' CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, kind, service, tool)
SETTINGS index_granularity = 256, materialize_ttl_recalculate_only = 1
COMMENT 'Events and failures by hour, added up from minutes.';

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_hour_refresh
REFRESH EVERY 1 MINUTE OFFSET 20 SECOND APPEND TO ${base}.rollup_hour
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

CREATE TABLE IF NOT EXISTS ${base}.rollup_day
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.' CODEC(ZSTD(1)),
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.' CODEC(ZSTD(1)),
    day Date COMMENT 'Day of event_time, for failures of created_at (UTC).' CODEC(Delta(2), ZSTD(1)),
    events UInt64 COMMENT 'Events, each counted once; 0 in rows of failures.' CODEC(T64, ZSTD(1)),
    failures UInt64 COMMENT 'Events that were lost for the tables.' CODEC(ZSTD(1)),
    incidents UInt64 COMMENT 'Times that a sink was away; nothing was lost.' CODEC(ZSTD(1)),
    failure_reasons Map(LowCardinality(String), UInt64) COMMENT 'Failures and incidents by reason.' CODEC(ZSTD(1)),
    without_result UInt64 COMMENT 'Retrievals that found nothing, and tool calls whose status is empty.' CODEC(ZSTD(1)),
    positive UInt64 COMMENT 'Feedback that was positive.' CODEC(ZSTD(1)),
    negative UInt64 COMMENT 'Feedback that was negative.' CODEC(ZSTD(1)),
    latency_ms_sum Float64 COMMENT 'Sum of latencies in milliseconds; divide by events for the mean.' CODEC(ZSTD(1)),
    latency_ms_max Float64 COMMENT 'Greatest latency in milliseconds.' CODEC(ZSTD(1)),
    latency_us Map(UInt32, UInt64) COMMENT 'How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.' CODEC(T64),
    scored UInt64 COMMENT 'Retrievals whose first hit has a score.' CODEC(ZSTD(1)),
    top_score_sum Float64 COMMENT 'Sum of the scores of first hits; divide by scored for the mean.' CODEC(ZSTD(1)),
    top_score_min Nullable(Float64) COMMENT 'Least score of a first hit; null when none has one.' CODEC(ZSTD(1)),
    pii_events UInt64 COMMENT 'Events in which personal data was found and removed.' CODEC(ZSTD(1)),
    pii_families Map(LowCardinality(String), UInt64) COMMENT 'How many findings of each family of personal data were removed. Add up with sumMap.' CODEC(ZSTD(1)),
    statuses Map(LowCardinality(String), UInt64) COMMENT 'Tool calls by status. Add up with sumMap.' CODEC(ZSTD(1)),
    fingerprint Int64 COMMENT 'Sum of hashes of the copies that were counted: tells whether exactly these are in the tables.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the latest event counted here. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    refreshed_at DateTime64(3, 'UTC') COMMENT 'Counts everything that was stored up to here (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(refreshed_at) COMMENT 'The latest count is shown.' CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, kind, service, tool)
SETTINGS index_granularity = 256, materialize_ttl_recalculate_only = 1
COMMENT 'Events and failures by day, added up from hours.';

CREATE VIEW IF NOT EXISTS ${base}.rollup_day_differing
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT kind, project, day
FROM
(
    SELECT kind, project, toDate(hour, 'UTC') AS day, sum(fingerprint) AS difference
    FROM ${base}.rollup_hour FINAL
    GROUP BY kind, project, day
    UNION ALL
    SELECT kind, project, day, -sum(fingerprint) AS difference
    FROM ${base}.rollup_day FINAL
    GROUP BY kind, project, day
)
GROUP BY kind, project, day
HAVING sum(difference) != 0
COMMENT 'Days of rollup_day in which something else was counted than in rollup_hour. Reads all of both.';

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_day_refresh
REFRESH EVERY 1 MINUTE OFFSET 40 SECOND APPEND TO ${base}.rollup_day EMPTY
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM ${base}.rollup_day) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toDate(hour, 'UTC') AS day,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM ${base}.rollup_hour FINAL
    WHERE (kind, project, toDate(hour, 'UTC')) IN
    (
        SELECT kind, project, toDate(hour, 'UTC')
        FROM ${base}.rollup_hour
        WHERE refreshed_at >= (SELECT max(refreshed_at) FROM ${base}.rollup_day) - toIntervalMinute(2)
    )
    GROUP BY kind, project, service, tool, day
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE MATERIALIZED VIEW IF NOT EXISTS ${base}.rollup_day_repair
REFRESH EVERY 1 HOUR OFFSET 10 MINUTE APPEND TO ${base}.rollup_day EMPTY
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH (SELECT greatest(now64(3, 'UTC'), max(refreshed_at) + toIntervalMillisecond(1)) FROM ${base}.rollup_day) AS at
SELECT *
FROM
(
    SELECT
        kind, project, service, tool, toDate(hour, 'UTC') AS day,
        sum(events) AS events, sum(failures) AS failures, sum(incidents) AS incidents, sumMap(failure_reasons) AS failure_reasons,
        sum(without_result) AS without_result, sum(positive) AS positive, sum(negative) AS negative,
        sum(latency_ms_sum) AS latency_ms_sum, max(latency_ms_max) AS latency_ms_max, sumMap(latency_us) AS latency_us,
        sum(scored) AS scored, sum(top_score_sum) AS top_score_sum, min(top_score_min) AS top_score_min,
        sum(pii_events) AS pii_events, sumMap(pii_families) AS pii_families, sumMap(statuses) AS statuses,
        sum(fingerprint) AS fingerprint,
        max(created_at) AS created_at, at AS refreshed_at
    FROM ${base}.rollup_hour FINAL
    WHERE (kind, project, toDate(hour, 'UTC')) IN (SELECT kind, project, day FROM ${base}.rollup_day_differing)
    GROUP BY kind, project, service, tool, day
)
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

CREATE VIEW IF NOT EXISTS ${views}.rollup_day
(
    kind Enum8('retrieval' = 1, 'answer' = 2, 'feedback' = 3, 'failure' = 4, 'tool_call' = 5, 'server_event' = 6) COMMENT 'What is counted: events of a kind, or failures.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'OpenTelemetry service.name of the producer.',
    tool LowCardinality(String) COMMENT 'The operation that retrieved, or the tool called; empty for other kinds.',
    day Date COMMENT 'Day of event_time, for failures of created_at (UTC).',
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
    kind, project, service, tool, day, events, failures, incidents, failure_reasons, without_result, positive,
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
FROM ${base}.rollup_day FINAL
WHERE events + failures + incidents > 0
COMMENT 'Events and failures by day, added up from hours.';
