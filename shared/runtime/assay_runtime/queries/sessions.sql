-- Sessions of agents by day and agent: how they ended, tool calls, errors and cost. Those of sub-agents are not counted.
-- days UInt32 = 30: days back from today (UTC)
-- project String = '': one project; empty for all
SELECT
    toDate(last_at) AS day, project, source, count() AS sessions, countIf(status = 'answered') AS answered,
    countIf(status = 'unanswered') AS unanswered, countIf(status = 'aborted') AS aborted, countIf(NOT complete) AS incomplete,
    sum(s.turns) AS turns, sum(s.tools) AS tools, round(sum(s.tool_errors) / greatest(tools, 1), 4) AS tool_error_rate,
    round(sum(s.cost_usd), 4) AS cost_usd, sum(s.positive) AS positive, sum(s.negative) AS negative
FROM sessions AS s
WHERE last_at >= today() - {days:UInt32}
  AND parent_session_id IS NULL
  AND ({project:String} = '' OR project = {project:String})
GROUP BY day, project, source
ORDER BY day DESC, sessions DESC;
