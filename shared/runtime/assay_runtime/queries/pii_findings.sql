-- Personal data removed, by family, project and service: findings and events.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT family, project, service, sum(findings) AS removed, count() AS events
FROM
(
    SELECT event_time, project, service, pii_families FROM candidates
    UNION ALL
    SELECT event_time, project, service, pii_families FROM answers
    UNION ALL
    SELECT event_time, project, service, pii_families FROM feedback
    UNION ALL
    SELECT event_time, project, service, pii_families FROM tool_calls
    UNION ALL
    SELECT event_time, project, service, pii_families FROM server_events
    UNION ALL
    SELECT event_time, project, service, pii_families FROM session_parts
)
ARRAY JOIN mapKeys(pii_families) AS family, mapValues(pii_families) AS findings
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY family, project, service
ORDER BY removed DESC;
