-- Retrieval latency in milliseconds (p50, p95, p99, maximum), by hour, project, service and operation.
-- Percentiles interpolate between events (a sample if there are many). `latency-trend` does not interpolate, so the two differ slightly.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    toStartOfHour(event_time) AS hour, project, service, tool_name, count() AS retrievals,
    round(quantile(0.5)(latency_ms), 1) AS p50_ms,
    round(quantile(0.95)(latency_ms), 1) AS p95_ms,
    round(quantile(0.99)(latency_ms), 1) AS p99_ms,
    round(max(latency_ms), 1) AS max_ms
FROM candidates
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY hour, project, service, tool_name
ORDER BY hour DESC, retrievals DESC;
