-- Events and failures by hour, kind, project, service and tool, from the rollup.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    hour, kind, project, service, tool, events, failures, incidents, failure_reasons,
    if(events = 0, NULL, round(without_result / events, 4)) AS without_result_rate
FROM rollup_hour
WHERE hour >= toStartOfHour(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
ORDER BY hour DESC, events DESC, failures DESC;
