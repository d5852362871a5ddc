-- The share of retrievals without results, by project, service, operation and whether vector search ran.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    project, service, tool_name, vector_enabled, count() AS retrievals,
    countIf(empty(retrieved_chunk_ids) AND empty(retrieved_ids) AND empty(passages.id)) AS without_result,
    round(without_result / retrievals, 4) AS rate
FROM candidates
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY project, service, tool_name, vector_enabled
ORDER BY rate DESC, retrievals DESC;
