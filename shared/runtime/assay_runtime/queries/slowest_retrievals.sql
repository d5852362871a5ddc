-- The slowest retrievals, with the ids to look them up.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- chars UInt32 = 80: maximum characters of the question
-- limit UInt32 = 20: maximum number of rows
SELECT
    event_time, round(latency_ms, 1) AS ms, project, service, tool_name, greatest(length(retrieved_chunk_ids), length(retrieved_ids), length(passages.id)) AS hits,
    leftUTF8(query, {chars:UInt32}) AS query_start, traceparent, event_id
FROM candidates
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
ORDER BY latency_ms DESC
LIMIT {limit:UInt32};
