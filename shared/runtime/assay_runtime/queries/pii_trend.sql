-- Personal data removed by day, family, project and service, and the share of events with any, from the rollup.
-- hours UInt32 = 168: hours back from now
-- project String = '': one project; empty for all
SELECT
    toDate(hour) AS day, project, service, sumMap(pii_families) AS removed,
    sum(pii_events) AS events_with_findings, round(events_with_findings / sum(events), 4) AS share
FROM rollup_hour
WHERE hour >= toStartOfHour(now()) - toIntervalHour({hours:UInt32})
  AND kind != 'failure'
  AND ({project:String} = '' OR project = {project:String})
GROUP BY day, project, service
ORDER BY day DESC, events_with_findings DESC;
