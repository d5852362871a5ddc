-- The documents returned most often, and their share of all retrievals.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
-- limit UInt32 = 20: maximum number of rows
WITH
    (
        SELECT count() FROM candidates
        WHERE event_time >= now() - toIntervalHour({hours:UInt32}) AND ({project:String} = '' OR project = {project:String})
    ) AS all_retrievals
SELECT slug, count() AS retrievals, round(retrievals / all_retrievals, 4) AS share
FROM candidates
ARRAY JOIN retrieved_slugs AS slug
WHERE event_time >= now() - toIntervalHour({hours:UInt32})
  AND ({project:String} = '' OR project = {project:String})
GROUP BY slug
ORDER BY retrievals DESC, slug
LIMIT {limit:UInt32};
