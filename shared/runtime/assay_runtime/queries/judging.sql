-- Judged answers and sessions by day, with status and cost. `coverage` below 1: sampled answers are missing.
-- days UInt32 = 30: days back from today
-- project String = '': one project; empty for all
SELECT
    day, project, kind, backend, fingerprint, answers AS seen, sampled, scored, abstained, no_context, judge_error, skipped_budget,
    round(coverage, 4) AS coverage, checks_failed, round(cost_usd, 4) AS cost_usd
FROM judging_by_day
WHERE day > today() - {days:UInt32}
  AND ({project:String} = '' OR project = {project:String})
ORDER BY day DESC, project, kind, fingerprint;
