-- Operations that deleted data or changed what it means, newest first. Outcome `started`: it still runs, or was killed.
-- since_ms Int64 = 0: start of the period in Unix milliseconds; 0 for all
-- operation String = '': one operation, for example prune; empty for all
-- actor String = '': one login name; empty for all
-- limit UInt32 = 100: maximum rows
SELECT
    operation_id, started_at, ended_at, operation, outcome, actor, host, through, identity, target, planned, changed, comment,
    error_kind, version
FROM operations
WHERE started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
  AND ({operation:String} = '' OR operation = {operation:String})
  AND ({actor:String} = '' OR actor = {actor:String})
ORDER BY started_at DESC, operation_id DESC
LIMIT {limit:UInt32};
