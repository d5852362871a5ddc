-- Operations that deleted stored data or changed what it means, newest first. `started` without an end: still running, or killed.
-- days UInt32 = 90: days back
-- operation String = '': one operation, for example prune; empty for all
-- actor String = '': one actor; empty for all
-- limit UInt32 = 100: maximum rows
SELECT
    operation_id, started_at, ended_at, operation, outcome, actor, host, identity, target, planned, changed, comment, error_kind
FROM operations
WHERE started_at >= now() - toIntervalDay({days:UInt32})
  AND ({operation:String} = '' OR operation = {operation:String})
  AND ({actor:String} = '' OR actor = {actor:String})
ORDER BY started_at DESC, operation_id DESC
LIMIT {limit:UInt32};
