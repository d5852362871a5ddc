-- Answers by model: count, latency, citations, and answers without a citation.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
SELECT
    model, project, service, count() AS answers,
    round(quantile(0.5)(latency_ms), 1) AS p50_ms, round(quantile(0.95)(latency_ms), 1) AS p95_ms,
    round(avg(length(answer)), 0) AS mean_answer_bytes, round(avg(length(contexts)), 1) AS mean_contexts,
    countIf(empty(citations)) AS without_citation
FROM answers
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY model, project, service
ORDER BY answers DESC;
