-- The same call, tool and arguments, made again and again in one conversation: in one run of a server if it was captured, or in an imported session.
-- source is capture or the agent. Arguments are compared as stored: texts over 2 KiB of equal size, and values below `filters`, look equal
-- in captured calls. Of imported ones, the first 64 KiB of a text count, and calls with more than a part of arguments are left out.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- times UInt32 = 3: minimum number of calls
-- chars UInt32 = 80: maximum characters of the arguments
-- limit UInt32 = 50: maximum number of rows
SELECT
    count() AS calls, countIf(status IN ('error', 'refused')) AS failed, project, service, source, tool_name,
    leftUTF8(any(arguments), {chars:UInt32}) AS arguments_start, session_id, server_session_id,
    min(event_time) AS first_at, max(event_time) AS last_at
FROM
(
    SELECT
        status, project, service, 'capture' AS source, tool_name, args_summary AS arguments, session_id, server_session_id, event_time
    FROM tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND ({project:String} = '' OR project = {project:String})
    UNION ALL
    SELECT status, project, service, source, tool_name, args, session_id, '', event_time
    FROM session_tool_calls
    WHERE event_time >= now() - toIntervalHour({hours:UInt32})
      AND session_at >= now() - toIntervalHour({hours:UInt32})
      AND ({project:String} = '' OR project = {project:String})
      AND executed_by = 'agent' AND counted AND args IS NOT NULL
)
GROUP BY project, service, source, session_id, server_session_id, tool_name, cityHash64(arguments)
HAVING calls >= {times:UInt32}
ORDER BY calls DESC, last_at DESC
LIMIT {limit:UInt32};
