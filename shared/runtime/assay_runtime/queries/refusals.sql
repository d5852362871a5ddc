-- Refused tool calls, with the categories of personal data that they attempted and that were kept out of the row.
-- Calls of imported sessions, which a person or the agent's own rules refused, have no categories. source is capture or the agent.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- limit UInt32 = 50: maximum number of rows
SELECT
    event_time, project, service, source, tool_name, error_kind, pii_attempted, pii_blocked, agent_name, session_id, traceparent, event_id
FROM
(
    SELECT
        event_time, project, service, 'capture' AS source, tool_name, error_kind, pii_attempted, pii_blocked, agent_name, session_id,
        traceparent, event_id
    FROM tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND status = 'refused'
      AND ({project:String} = '' OR project = {project:String})
    UNION ALL
    SELECT
        event_time, project, service, source, tool_name, error_kind, [], [], source, session_id, NULL, event_id
    FROM session_tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND session_at >= now() - toIntervalHour({hours:UInt32})
      AND status = 'refused'
      AND ({project:String} = '' OR project = {project:String})
      AND executed_by = 'agent' AND counted
)
ORDER BY event_time DESC
LIMIT {limit:UInt32};
