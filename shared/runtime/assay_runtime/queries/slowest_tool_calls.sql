-- The slowest tool calls, with the ids to look them up.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- chars UInt32 = 80: maximum characters of the arguments
-- limit UInt32 = 20: maximum number of rows
SELECT
    event_time, round(duration_ms, 1) AS ms, project, service, tool_name, status, leftUTF8(args_summary, {chars:UInt32}) AS arguments_start,
    session_id, traceparent, event_id
FROM tool_calls
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
ORDER BY duration_ms DESC
LIMIT {limit:UInt32};
