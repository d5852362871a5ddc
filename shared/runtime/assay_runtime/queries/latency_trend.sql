-- Latency in milliseconds by minute, kind, project, service and tool, from the rollup (percentiles exact to 1 %).
-- hours UInt32 = 1: hours back from now
-- project String = '': one project; empty for all
SELECT
    minute, kind, project, service, tool, events, round(latency_ms_sum / events, 1) AS mean_ms,
    round(p50_ms, 1) AS p50, round(p95_ms, 1) AS p95, round(p99_ms, 1) AS p99, round(latency_ms_max, 1) AS max_ms
FROM rollup_minute
WHERE kind IN ('retrieval', 'answer')
  AND minute >= toStartOfMinute(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
ORDER BY minute DESC, events DESC;
