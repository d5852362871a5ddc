-- Cost of judging by day, project and model, and answers skipped because the budget was used up.
-- days UInt32 = 30: days back from today
-- project String = '': one project; empty for all
SELECT
    day, project, backend, model, judged, skipped_budget, round(cost_usd, 4) AS cost_usd, input_tokens, output_tokens,
    round(cost_usd / nullIf(judged, 0), 6) AS usd_per_answer
FROM judge_spend
WHERE day > today() - {days:UInt32}
  AND ({project:String} = '' OR project = {project:String})
ORDER BY day DESC, cost_usd DESC, project;
