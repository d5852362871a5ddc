-- Delay from the log (Redis) to the tables in milliseconds, by ten minutes. Producers' clocks do not matter.
-- hours UInt32 = 1: hours back from now
-- project String = '': one project; empty for all
SELECT
    toStartOfInterval(created_at, toIntervalMinute(10)) AS from_time, kind, count() AS events,
    quantile(0.5)(delay_ms) AS p50_ms, quantile(0.99)(delay_ms) AS p99_ms, max(delay_ms) AS max_ms
FROM
(
    SELECT created_at, 'retrieval' AS kind, project, dateDiff('millisecond', created_at, stored_at) AS delay_ms FROM candidates
    UNION ALL
    SELECT created_at, 'answer' AS kind, project, dateDiff('millisecond', created_at, stored_at) AS delay_ms FROM answers
    UNION ALL
    SELECT created_at, 'feedback' AS kind, project, dateDiff('millisecond', created_at, stored_at) AS delay_ms FROM feedback
    UNION ALL
    SELECT created_at, 'tool_call' AS kind, project, dateDiff('millisecond', created_at, stored_at) AS delay_ms FROM tool_calls
    UNION ALL
    SELECT created_at, 'server_event' AS kind, project, dateDiff('millisecond', created_at, stored_at) AS delay_ms FROM server_events
    UNION ALL
    SELECT created_at, 'session' AS kind, project, dateDiff('millisecond', created_at, stored_at) AS delay_ms FROM session_parts
)
WHERE created_at >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY from_time, kind
ORDER BY from_time DESC, kind;
