-- Latency in milliseconds by minute, kind, project, service and tool, from the rollup.
-- Percentiles are nearest ranks in a histogram with buckets 2 % wide. `retrieval-latency` interpolates, so the two differ slightly.
-- hours UInt32 = 1: hours back from now
-- project String = '': one project; empty for all
WITH
    quantilesExactWeightedArray(0.5, 0.95, 0.99)(mapKeys(r.latency_us), mapValues(r.latency_us)) AS us
SELECT
    minute, kind, project, service, tool, sum(r.events) AS events, round(sum(r.latency_ms_sum) / sum(r.events), 1) AS mean_ms,
    round(us[1] / 1000, 1) AS p50_ms, round(us[2] / 1000, 1) AS p95_ms, round(us[3] / 1000, 1) AS p99_ms, round(max(r.latency_ms_max), 1) AS max_ms
FROM rollup_minute AS r
WHERE kind IN ('retrieval', 'answer', 'tool_call')
  AND minute >= toStartOfMinute(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY minute, kind, project, service, tool
ORDER BY minute DESC, events DESC;
