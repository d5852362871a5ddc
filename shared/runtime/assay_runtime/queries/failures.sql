-- What could not be stored, by reason, stage, error and producer. `lost` counts events, `incidents` times that a sink was away (nothing lost).
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    reason, stage, error_class, project, service,
    countIf(entry_id IS NOT NULL) AS lost, countIf(entry_id IS NULL) AS incidents,
    max(created_at) AS latest, argMax(detail, created_at) AS latest_detail
FROM capture_failures
WHERE created_at >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY reason, stage, error_class, project, service
ORDER BY lost DESC, incidents DESC;
