-- Tool calls that failed or were refused, by tool, status and kind of error: captured ones and those of imported sessions.
-- source is capture or the agent. Commands that a person ran, and calls that are counted elsewhere (counted = false), are left out.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    project, service, source, tool_name, status, error_kind, count() AS calls, uniqExactIf(server_session_id, source = 'capture') AS server_sessions,
    uniqExact(session_id) AS sessions, max(event_time) AS latest, argMax(session_id, event_time) AS latest_session_id,
    argMax(event_id, event_time) AS latest_event_id
FROM
(
    SELECT
        project, service, 'capture' AS source, tool_name, status, error_kind, server_session_id, session_id, event_time, event_id
    FROM tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND status IN ('error', 'refused')
      AND ({project:String} = '' OR project = {project:String})
    UNION ALL
    SELECT project, service, source, tool_name, status, error_kind, '', session_id, event_time, event_id
    FROM session_tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND session_at >= now() - toIntervalHour({hours:UInt32})
      AND status IN ('error', 'refused')
      AND ({project:String} = '' OR project = {project:String})
      AND executed_by = 'agent' AND counted
)
GROUP BY project, service, source, tool_name, status, error_kind
ORDER BY calls DESC, latest DESC;
