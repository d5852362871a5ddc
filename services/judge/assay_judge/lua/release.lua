-- Release the reservation of calls that were certainly not billed.
-- KEYS: call record, spend, spend of all projects.
-- ARGV: owner.
-- Returns 1 or 0.

redis.replicate_commands()
local state, owner, held = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'amount'))
if owner ~= ARGV[1] or state ~= 'reserved' then return 0 end
redis.call('DECRBY', KEYS[2], string.format('%.0f', tonumber(held or '0')))
if redis.call('HGET', KEYS[1], 'in_total') then redis.call('DECRBY', KEYS[3], string.format('%.0f', tonumber(held or '0'))) end
redis.call('DEL', KEYS[1])
return 1
