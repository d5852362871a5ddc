-- The judged sessions with the worst scores of a metric. For the items of the rubric: assay sessions show.
-- metric String = 'rubric_score': rubric_score, or a dimension: task_success, tool_use, trajectory, groundedness, safety, instruction_following
-- since_ms Int64 = 0: start of the period in Unix milliseconds; 0 for 7 days back
-- until_ms Int64 = 0: end of the period in Unix milliseconds; 0 for now
-- project String = '': one project; empty for all
-- limit UInt32 = 20: maximum number of rows
WITH worst AS
(
    SELECT
        event_time, project, assumeNotNull(t.session_id) AS session, service, metrics[{metric:String}] AS value, toString(fingerprint) AS judge,
        arrayMap(item -> item.criterion, arrayFilter(item -> item.verdict = 'no', rubric)) AS unmet
    FROM scores AS t
    WHERE event_time >= if({since_ms:Int64} = 0, now() - toIntervalDay(7), fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC'))
      AND ({until_ms:Int64} = 0 OR event_time < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC'))
      AND ({project:String} = '' OR project = {project:String})
      AND t.session_id IS NOT NULL AND status = 'scored' AND mapContains(metrics, {metric:String})
    ORDER BY value, event_time DESC
    LIMIT {limit:UInt32}
)
SELECT
    worst.event_time AS event_time, worst.project AS project, worst.service AS service, round(worst.value, 4) AS value,
    leftUTF8(ifNull(found.title, ''), 60) AS title, leftUTF8(worst.unmet[1], 80) AS first_unmet, worst.judge AS judge, worst.session AS session_id
FROM worst
LEFT JOIN
(
    SELECT project, session_id, any(title) AS title FROM session_parts WHERE session_id IN (SELECT session FROM worst)
    GROUP BY project, session_id
) AS found ON found.project = worst.project AND found.session_id = worst.session
ORDER BY worst.value, worst.event_time DESC;
