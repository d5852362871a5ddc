-- Layer-1 checks by day: answers that passed and failed each check.
-- days UInt32 = 7: days back from today
-- project String = '': one project; empty for all
SELECT
    toDate(event_time) AS day, project, passed.1 AS check, countIf(passed.2) AS passed_answers, countIf(NOT passed.2) AS failed_answers,
    round(failed_answers / count(), 4) AS failed_rate
FROM scores
ARRAY JOIN arrayZip(mapKeys(checks), mapValues(checks)) AS passed
WHERE event_time >= toStartOfDay(now()) - toIntervalDay({days:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY day, project, check
ORDER BY day DESC, failed_rate DESC, check;
