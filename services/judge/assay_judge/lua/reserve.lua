-- Reserve money for one attempt, unless that would exceed a cap. Idempotent for the same attempt.
-- KEYS: call record, spend, spend of all projects.
-- ARGV: owner, attempt (from 1), nano-dollars, cap, milliseconds of the lease, milliseconds to keep record and spend,
--   cap of all projects. If the answer then waits for a batch, it is queued in the same step: KEYS[4], and ARGV: event
--   id, answer.
-- Returns {'ok'}, {'budget'}, {'all_budgets'}, {'done', score or ''}, {'busy', ms} (another judge is working on it)
--   or {'interrupted', nano-dollars}: the judge with the reservation died, and its call may have been billed. Its
--   reservation stays spent, and there is no second call for the answer.

redis.replicate_commands()
--@include now
local owner, try, amount, cap = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state, held_by, tries, lease, held = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'try', 'lease', 'amount'))
if state == 'done' then return {'done', redis.call('HGET', KEYS[1], 'score')} end
if redis.call('HGET', KEYS[1], 'published') then return {'done', ''} end
if state == 'reserved' and held_by ~= owner then
  if tonumber(lease) > now then return {'busy', tonumber(lease) - now} end
  redis.call('HSET', KEYS[1], 'owner', owner, 'try', 1000, 'lease', string.format('%.0f', now + tonumber(ARGV[5])))
  return {'interrupted', held}
end
if state == 'reserved' and tonumber(tries) >= try then return {tonumber(tries) >= 1000 and 'interrupted' or 'ok', held} end
local spent = tonumber(redis.call('GET', KEYS[2]) or '0')
if spent + amount > cap then return {'budget'} end
if tonumber(redis.call('GET', KEYS[3]) or '0') + amount > tonumber(ARGV[8]) then return {'all_budgets'} end
for place = 2, 3 do
  redis.call('INCRBY', KEYS[place], string.format('%.0f', amount))
  redis.call('PEXPIRE', KEYS[place], ARGV[7])
end
redis.call('HSET', KEYS[1], 'state', 'reserved', 'owner', owner, 'try', ARGV[2],
  'lease', string.format('%.0f', now + tonumber(ARGV[5])), 'amount', string.format('%.0f', tonumber(held or '0') + amount),
  'spend', KEYS[2], 'in_total', '1')
if KEYS[4] then redis.call('HSET', KEYS[4], ARGV[9], ARGV[10]) end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return {'ok'}
