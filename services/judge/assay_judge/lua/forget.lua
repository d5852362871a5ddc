-- Delete a call record, unless a judge is at work on its answer.
-- KEYS: call record.
-- Returns 1 if there is none now, else 0.

redis.replicate_commands()
--@include now
local state, lease = unpack(redis.call('HMGET', KEYS[1], 'state', 'lease'))
if state == 'reserved' and tonumber(lease or '0') > now then return 0 end
redis.call('DEL', KEYS[1])
return 1
