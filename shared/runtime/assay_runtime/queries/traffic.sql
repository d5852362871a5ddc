-- Events and failures by hour, kind, project, service and tool, from the rollup.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    hour, kind, project, service, tool,
    sum(r.events) AS events, sum(r.failures) AS failures, sum(r.incidents) AS incidents, sumMap(r.failure_reasons) AS failure_reasons,
    if(kind = 'retrieval', round(sum(r.without_result) / sum(r.events), 4), NULL) AS without_result_rate
FROM rollup_hour AS r
WHERE hour >= toStartOfHour(now()) - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY hour, kind, project, service, tool
ORDER BY hour DESC, events DESC, failures DESC;
