-- Refused tool calls, with the categories of personal data that they attempted and that were kept out of the row.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- limit UInt32 = 50: maximum number of rows
SELECT
    event_time, project, service, tool_name, error_kind, pii_attempted, pii_blocked, agent_name, session_id, traceparent, event_id
FROM tool_calls
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND status = 'refused'
  AND ({project:String} = '' OR project = {project:String})
ORDER BY event_time DESC
LIMIT {limit:UInt32};
