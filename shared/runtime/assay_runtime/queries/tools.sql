-- Tool calls by project, service and tool, with their statuses and latency in milliseconds: captured ones, from the rollups, and those of imported sessions.
-- source is capture or the agent. Commands that a person ran, and calls that are counted elsewhere (counted = false), are left out.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
WITH
    toStartOfHour(now('UTC')) - toIntervalHour({hours:UInt32}) AS since,
    toStartOfDay(since + toIntervalSecond(86399)) AS first_day
SELECT
    project, service, source, tool, calls, errors, refused, empty, round((errors + refused) / calls, 4) AS error_rate,
    round(p50, 1) AS p50_ms, round(p95, 1) AS p95_ms, round(most, 1) AS max_ms
FROM
(
    SELECT
        r.project AS project, r.service AS service, 'capture' AS source, r.tool AS tool, sum(r.events) AS calls,
        sumMap(r.statuses) AS by_status, by_status['error'] AS errors, by_status['refused'] AS refused, by_status['empty'] AS empty,
        quantilesExactWeightedArray(0.5, 0.95)(mapKeys(r.latency_us), mapValues(r.latency_us)) AS us,
        toNullable(us[1] / 1000) AS p50, toNullable(us[2] / 1000) AS p95, toNullable(max(r.latency_ms_max)) AS most
    FROM
    (
        SELECT project, service, tool, events, statuses, latency_us, latency_ms_max
        FROM rollup_day
        WHERE kind = 'tool_call' AND day >= toDate(first_day) AND ({project:String} = '' OR project = {project:String})
        UNION ALL
        SELECT project, service, tool, events, statuses, latency_us, latency_ms_max
        FROM rollup_hour
        WHERE kind = 'tool_call' AND hour >= since AND hour < first_day AND ({project:String} = '' OR project = {project:String})
    ) AS r
    GROUP BY project, service, tool
    UNION ALL
    SELECT
        project, service, source, tool_name, count(), map(), countIf(status = 'error'), countIf(status = 'refused'), countIf(status = 'empty'),
        [], quantileExact(0.5)(duration_ms), quantileExact(0.95)(duration_ms), max(duration_ms)
    FROM session_tool_calls
    WHERE event_time >= since
      AND session_at >= since
      AND ({project:String} = '' OR project = {project:String})
      AND executed_by = 'agent' AND counted
    GROUP BY project, service, source, tool_name
)
ORDER BY calls DESC, project, service, source, tool;
