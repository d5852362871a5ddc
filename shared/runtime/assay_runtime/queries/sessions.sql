-- Sessions of agents by day and agent: how they ended, tool calls, errors and cost. Those of sub-agents are not counted.
-- A fork repeats the beginning of its session, so turns, tools and cost are those of sessions that are not forks.
-- days UInt32 = 30: days back from today (UTC)
-- project String = '': one project; empty for all
SELECT
    toDate(last_at) AS day, project, source, count() AS sessions, countIf(status = 'answered') AS answered,
    countIf(status = 'unanswered') AS unanswered, countIf(status = 'aborted') AS aborted, countIf(NOT complete) AS incomplete,
    countIf(s.forked_from IS NOT NULL) AS forks, sumIf(s.turns, s.forked_from IS NULL) AS turns,
    sumIf(s.tools, s.forked_from IS NULL) AS tools,
    round(sumIf(s.tool_errors, s.forked_from IS NULL) / greatest(tools, 1), 4) AS tool_error_rate,
    round(sumIf(s.cost_usd, s.forked_from IS NULL), 4) AS cost_usd, sum(s.positive) AS positive, sum(s.negative) AS negative
FROM sessions AS s
WHERE last_at >= today() - {days:UInt32}
  AND parent_session_id IS NULL
  AND ({project:String} = '' OR project = {project:String})
GROUP BY day, project, source
ORDER BY day DESC, sessions DESC;
