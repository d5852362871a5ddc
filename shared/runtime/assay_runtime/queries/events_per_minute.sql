-- Events per minute, by kind, project and service.
-- hours UInt32 = 1: hours back from now
-- project String = '': one project; empty for all
SELECT toStartOfMinute(event_time) AS minute, kind, project, service, count() AS events
FROM
(
    SELECT event_time, 'retrieval' AS kind, project, service FROM candidates
    UNION ALL
    SELECT event_time, 'answer' AS kind, project, service FROM answers
    UNION ALL
    SELECT event_time, 'feedback' AS kind, project, service FROM feedback
    UNION ALL
    SELECT event_time, 'tool_call' AS kind, project, service FROM tool_calls
    UNION ALL
    SELECT event_time, 'server_event' AS kind, project, service FROM server_events
    UNION ALL
    SELECT event_time, 'session' AS kind, project, service FROM session_parts
)
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY minute, kind, project, service
ORDER BY minute DESC, events DESC;
