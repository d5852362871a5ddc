-- The slowest tool calls, with the ids to look them up: captured ones and those of imported sessions whose log has a duration.
-- source is capture or the agent. Commands that a person ran, and calls that are counted elsewhere (counted = false), are left out.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- chars UInt32 = 80: maximum characters of the arguments
-- limit UInt32 = 20: maximum number of rows
SELECT
    event_time, round(duration_ms, 1) AS ms, project, service, source, tool_name, status, leftUTF8(arguments, {chars:UInt32}) AS arguments_start,
    session_id, traceparent, event_id
FROM
(
    SELECT
        event_time, toNullable(duration_ms) AS duration_ms, project, service, 'capture' AS source, tool_name, status, args_summary AS arguments,
        session_id, traceparent, event_id
    FROM tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND ({project:String} = '' OR project = {project:String})
    UNION ALL
    SELECT event_time, duration_ms, project, service, source, tool_name, status, args, session_id, NULL, event_id
    FROM session_tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND session_at >= now() - toIntervalHour({hours:UInt32})
      AND ({project:String} = '' OR project = {project:String})
      AND executed_by = 'agent' AND counted AND duration_ms IS NOT NULL
)
ORDER BY ms DESC, event_time DESC
LIMIT {limit:UInt32};
