-- The same call, tool and arguments, made again and again in one run of a server and one conversation.
-- Arguments are compared as stored: texts over 2 KiB of equal size, and values below `filters`, look equal.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- times UInt32 = 3: minimum number of calls
-- chars UInt32 = 80: maximum characters of the arguments
-- limit UInt32 = 50: maximum number of rows
SELECT
    count() AS calls, countIf(status IN ('error', 'refused')) AS failed, project, service, tool_name,
    leftUTF8(any(args_summary), {chars:UInt32}) AS arguments_start, session_id, server_session_id,
    min(event_time) AS first_at, max(event_time) AS last_at
FROM tool_calls
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY project, service, session_id, server_session_id, tool_name, cityHash64(args_summary)
HAVING calls >= {times:UInt32}
ORDER BY calls DESC
LIMIT {limit:UInt32};
