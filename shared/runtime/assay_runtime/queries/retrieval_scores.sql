-- The scores of first hits (mean and least), and how many retrievals had none, by hour, project, service and operation, from the rollup.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    hour, project, service, tool, events AS retrievals, scored, without_result,
    if(scored = 0, NULL, round(top_score_sum / scored, 4)) AS mean_top_score, round(top_score_min, 4) AS least_top_score
FROM rollup_hour
WHERE kind = 'retrieval'
  AND hour >= toStartOfHour(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
ORDER BY hour DESC, retrievals DESC;
