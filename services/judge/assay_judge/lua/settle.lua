-- Replace a reservation by the actual cost, and store the score: all or nothing, once.
-- KEYS: call record, spend (of the day of the reservation), spend of all projects, number of paid answers.
-- ARGV: owner, nano-dollars spent, score, milliseconds to keep the record, and the number. Reservations of an older
--   version are not in the spend of all projects.
-- Returns 1, or 0 if another judge owns the record by now: the money is corrected, the score is not stored.

redis.replicate_commands()
local state, owner, held = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'amount'))
if owner ~= ARGV[1] then return 0 end
if state == 'done' then return 1 end
local more = string.format('%.0f', tonumber(ARGV[2]) - tonumber(held or '0'))
redis.call('INCRBY', KEYS[2], more)
if redis.call('HGET', KEYS[1], 'in_total') then redis.call('INCRBY', KEYS[3], more) end
redis.call('INCRBY', KEYS[4], 1)
redis.call('PEXPIRE', KEYS[4], ARGV[5])
redis.call('HSET', KEYS[1], 'state', 'done', 'amount', ARGV[2], 'score', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
