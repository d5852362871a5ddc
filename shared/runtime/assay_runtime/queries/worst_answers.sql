-- The judged answers with the worst scores of a metric, with the beginnings of question and answer. For the whole text: the views `answers` and
-- `scores`, by `event_id`. A share such as `abstained`, `no_context` or `check_failed_NAME` lists the answers that it counts.
-- metric String = 'faithfulness': the metric or share
-- since_ms Int64 = 0: start of the period in Unix milliseconds; 0 for 24 hours back
-- until_ms Int64 = 0: end of the period in Unix milliseconds; 0 for now
-- project String = '': one project; empty for all
-- chars UInt32 = 80: maximum characters of question and answer
-- limit UInt32 = 20: maximum number of rows
WITH
    startsWith({metric:String}, 'check_failed_') AS of_check,
    {metric:String} IN ('abstained', 'no_context') AS of_status,
    substring({metric:String}, 14) AS check,
    worst AS
    (
        SELECT
            event_id, event_time, project, service, toString(fingerprint) AS judge,
            multiIf(of_check, toFloat64(NOT checks[check]), of_status, toFloat64(status = {metric:String}), metrics[{metric:String}]) AS value
        FROM scores
        WHERE event_time >= if({since_ms:Int64} = 0, now() - toIntervalHour(24), fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC'))
          AND ({until_ms:Int64} = 0 OR event_time < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC'))
          AND ({project:String} = '' OR project = {project:String})
          AND session_id IS NULL
          AND multiIf(of_check, mapContains(checks, check) AND NOT checks[check], of_status, status = {metric:String},
                      status = 'scored' AND mapContains(metrics, {metric:String}))
        ORDER BY if({metric:String} = 'hallucination_rate', -value, value), event_time DESC
        LIMIT {limit:UInt32}
    )
SELECT
    worst.event_time AS event_time, worst.project AS project, worst.service AS service, round(worst.value, 4) AS value,
    leftUTF8(found.query, {chars:UInt32}) AS query_start, leftUTF8(found.answer, {chars:UInt32}) AS answer_start, worst.judge AS judge,
    worst.event_id AS event_id
FROM worst
LEFT JOIN
(
    SELECT event_id, query, answer FROM answers WHERE event_id IN (SELECT event_id FROM worst)
) AS found ON found.event_id = worst.event_id
ORDER BY if({metric:String} = 'hallucination_rate', -worst.value, worst.value), worst.event_time DESC;
