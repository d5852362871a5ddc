-- Events that are visible more than once. `duplicates` is 0 unless the store or Assay has a defect.
SELECT 'candidates' AS view, count() AS visible, uniqExact(event_id) AS distinct_events, visible - distinct_events AS duplicates
FROM candidates
UNION ALL
SELECT 'answers', count(), uniqExact(event_id), count() - uniqExact(event_id)
FROM answers
UNION ALL
SELECT 'feedback', count(), uniqExact(event_id), count() - uniqExact(event_id)
FROM feedback
UNION ALL
SELECT 'tool_calls', count(), uniqExact(event_id), count() - uniqExact(event_id)
FROM tool_calls
UNION ALL
SELECT 'server_events', count(), uniqExact(event_id), count() - uniqExact(event_id)
FROM server_events
UNION ALL
SELECT 'session_parts', count(), uniqExact(event_id), count() - uniqExact(event_id)
FROM session_parts
UNION ALL
SELECT 'capture_failures', count(), uniqExact(failure_id), count() - uniqExact(failure_id)
FROM capture_failures;
