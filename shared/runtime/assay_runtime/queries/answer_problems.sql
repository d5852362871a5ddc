-- Shares of answers with a problem, by hour and project: the judge failed, no claim (abstained), no passages, a failed check. Shares of the judge
-- are of the base stream's answers with a verdict or an error; `check_failed_rate` is of all answers.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    toStartOfHour(event_time) AS hour, project, count() AS answers,
    countIf(base AND status IN ('scored', 'abstained', 'no_context', 'judge_error')) AS judged,
    round(countIf(base AND status = 'judge_error') / greatest(judged, 1), 4) AS judge_error_rate,
    round(countIf(base AND status = 'abstained') / greatest(judged, 1), 4) AS abstained_rate,
    round(countIf(base AND status = 'no_context') / greatest(judged, 1), 4) AS no_context_rate,
    round(countIf(arrayExists(passed -> NOT passed, mapValues(checks))) / answers, 4) AS check_failed_rate
FROM scores
WHERE session_id IS NULL
  AND event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY hour, project
ORDER BY hour DESC, project;
