-- Transitions of alert episodes, newest first.
-- days UInt32 = 30: days back from now
-- project String = '': one project; empty for all
SELECT at, state, previous, severity, kind, project, service, metric, value, baseline, effect, n, since, summary, alert_id
FROM alerts
WHERE at >= now() - toIntervalDay({days:UInt32})
  AND ({project:String} = '' OR project = {project:String})
ORDER BY at DESC, sequence DESC;
