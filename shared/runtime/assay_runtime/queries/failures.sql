-- Events that could not be stored, by reason, stage, error, rule (the field and what it breaks) and producer.
-- `lost`: events that are not in the store; `recovered`: events that are visible by now, such as requeued dead letters;
-- `incidents`: outages of a sink (nothing is lost). An entry that several services refused counts
-- once: for the scrubber or the writer, else for the first. Unreadable entries with equal ids, of several
-- shards, all count: as many as one service refused. The scrubber alone reads raw events: its entries are of another stream.
-- hours UInt32 = 24: hours back from now
-- project String = '': one project; empty for all
WITH
    recent AS
    (
        SELECT *, row_number() OVER (PARTITION BY entry_id, event_id, stage ORDER BY failure_id) AS place
        FROM capture_failures
        WHERE created_at >= now() - toIntervalHour({hours:UInt32})
          AND ({project:String} = '' OR project = {project:String})
    ),
    failed AS
    (
        SELECT * FROM recent
        ORDER BY stage IN ('scrubber', 'writer') DESC, created_at
        LIMIT 1 BY ifNull(entry_id, toString(failure_id)), event_id, stage = 'scrubber', place
    ),
    named AS (SELECT assumeNotNull(event_id) AS id FROM recent WHERE event_id IS NOT NULL),
    (SELECT if(count() = 0, now64(3), min(UUIDv7ToDateTime(id, 'UTC'))) FROM named) AS earliest,
    visible AS
    (
        SELECT event_id
        FROM (SELECT event_id, event_time FROM events UNION ALL SELECT event_id, event_time FROM session_parts)
        WHERE event_time >= earliest AND event_id IN (SELECT id FROM named)
    )
SELECT
    reason, stage, error_class, replaceRegexpAll(detail, '\\.[0-9]+', '.N') AS rule, project, service,
    countIf(entry_id IS NOT NULL) - recovered AS lost,
    countIf(entry_id IS NOT NULL AND ifNull(event_id IN (SELECT event_id FROM visible), 0)) AS recovered,
    countIf(entry_id IS NULL) AS incidents,
    max(created_at) AS latest
FROM failed
GROUP BY reason, stage, error_class, rule, project, service
ORDER BY lost DESC, incidents DESC, recovered DESC;
