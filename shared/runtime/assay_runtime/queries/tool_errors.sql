-- Tool calls that failed or were refused, by tool, status and kind of error.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    project, service, tool_name, status, error_kind, count() AS calls, uniqExact(server_session_id) AS server_sessions,
    max(event_time) AS latest, argMax(event_id, event_time) AS latest_event_id
FROM tool_calls
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND status IN ('error', 'refused')
  AND ({project:String} = '' OR project = {project:String})
GROUP BY project, service, tool_name, status, error_kind
ORDER BY calls DESC;
