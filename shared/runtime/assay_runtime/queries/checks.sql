-- Layer-1 checks by day, or by hour: answers that passed and failed each check.
-- days UInt32 = 7: days back from today
-- hours UInt32 = 0: hours back from now, by hour; 0 for days
-- project String = '': one project; empty for all
SELECT
    if({hours:UInt32} = 0, toStartOfDay(event_time), toStartOfHour(event_time)) AS period, project, passed.1 AS check, countIf(passed.2) AS passed_answers, countIf(NOT passed.2) AS failed_answers,
    round(failed_answers / count(), 4) AS failed_rate
FROM scores
ARRAY JOIN arrayZip(mapKeys(checks), mapValues(checks)) AS passed
WHERE event_time >= if({hours:UInt32} = 0, toStartOfDay(now()) - toIntervalDay({days:UInt32}), now() - toIntervalHour({hours:UInt32}))
  AND ({project:String} = '' OR project = {project:String})
GROUP BY period, project, check
ORDER BY period DESC, failed_rate DESC, check;
