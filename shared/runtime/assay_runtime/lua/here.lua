-- Identifies this Redis: the value changes with each restart, each failover and each move of a slot. Empty if the
-- server does not report it.

local here = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
