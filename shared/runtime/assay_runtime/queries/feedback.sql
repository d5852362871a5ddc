-- Feedback by day, project and service, and the share that is positive.
-- hours UInt32 = 168: hours back from now
-- project String = '': one project; empty for all
SELECT
    toDate(event_time) AS day, project, service, count() AS verdicts,
    countIf(verdict = 'positive') AS positive, countIf(verdict = 'negative') AS negative,
    round(positive / verdicts, 4) AS positive_rate
FROM feedback
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY day, project, service
ORDER BY day DESC, verdicts DESC;
