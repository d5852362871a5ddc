-- Scores of first hits (mean and minimum) and the number of retrievals without any, by hour, project, service and operation, from the rollup.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    hour, project, service, tool, sum(r.events) AS retrievals, sum(r.scored) AS scored, sum(r.without_result) AS without_result,
    if(sum(r.scored) = 0, NULL, round(sum(r.top_score_sum) / sum(r.scored), 4)) AS mean_top_score,
    round(min(r.top_score_min), 4) AS least_top_score
FROM rollup_hour AS r
WHERE kind = 'retrieval'
  AND hour >= toStartOfHour(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY hour, project, service, tool
ORDER BY hour DESC, retrievals DESC;
