-- Tool calls by project, service and tool, with their statuses and latency in milliseconds, from the rollup.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
WITH
    quantilesExactWeightedArray(0.5, 0.95)(mapKeys(r.latency_us), mapValues(r.latency_us)) AS us,
    sumMap(r.statuses) AS by_status
SELECT
    project, service, tool, sum(r.events) AS calls, by_status['error'] AS errors, by_status['refused'] AS refused,
    by_status['empty'] AS empty, round((errors + refused) / calls, 4) AS error_rate,
    round(us[1] / 1000, 1) AS p50_ms, round(us[2] / 1000, 1) AS p95_ms, round(max(r.latency_ms_max), 1) AS max_ms
FROM rollup_hour AS r
WHERE kind = 'tool_call'
  AND hour >= toStartOfHour(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY project, service, tool
ORDER BY calls DESC;
