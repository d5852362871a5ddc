"""The judge's atomic steps in Redis, as named Lua scripts.

The keys of each script share a hash tag, so they run on Redis Cluster too. A *call record* is the state of an answer's
judging by one judge: `reserved` (a call may be running) or `done` (its score is known).
"""

from assay_runtime.same_redis import HERE, REFUSE_OTHERS
from assay_schema.streams import FIELD

_NOW = """local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
"""

#: Reserve money for one attempt, unless that would exceed a cap. Idempotent for the same attempt. KEYS: call record,
#: spend, spend of all projects. ARGV: owner, attempt (from 1), nano-dollars, cap, milliseconds of the lease,
#: milliseconds to keep record and spend, cap of all projects. If the answer then waits for a batch, it is queued in the
#: same step: KEYS[4], and ARGV: event id, answer. Returns {'ok'}, {'budget'}, {'all_budgets'}, {'done', score or ''},
#: {'busy', ms} (another judge is working on it) or {'interrupted', nano-dollars}: the judge with the reservation died,
#: and its call may have been billed. Its reservation stays spent, and there is no second call for the answer.
RESERVE = f"""
redis.replicate_commands()
{_NOW}
local owner, try, amount, cap = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state, held_by, tries, lease, held = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'try', 'lease', 'amount'))
if state == 'done' then return {{'done', redis.call('HGET', KEYS[1], 'score')}} end
if redis.call('HGET', KEYS[1], 'published') then return {{'done', ''}} end
if state == 'reserved' and held_by ~= owner then
  if tonumber(lease) > now then return {{'busy', tonumber(lease) - now}} end
  redis.call('HSET', KEYS[1], 'owner', owner, 'try', 1000, 'lease', string.format('%.0f', now + tonumber(ARGV[5])))
  return {{'interrupted', held}}
end
if state == 'reserved' and tonumber(tries) >= try then return {{tonumber(tries) >= 1000 and 'interrupted' or 'ok', held}} end
local spent = tonumber(redis.call('GET', KEYS[2]) or '0')
if spent + amount > cap then return {{'budget'}} end
if tonumber(redis.call('GET', KEYS[3]) or '0') + amount > tonumber(ARGV[8]) then return {{'all_budgets'}} end
for place = 2, 3 do
  redis.call('INCRBY', KEYS[place], string.format('%.0f', amount))
  redis.call('PEXPIRE', KEYS[place], ARGV[7])
end
redis.call('HSET', KEYS[1], 'state', 'reserved', 'owner', owner, 'try', ARGV[2],
  'lease', string.format('%.0f', now + tonumber(ARGV[5])), 'amount', string.format('%.0f', tonumber(held or '0') + amount),
  'spend', KEYS[2], 'in_total', '1')
if KEYS[4] then redis.call('HSET', KEYS[4], ARGV[9], ARGV[10]) end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return {{'ok'}}
"""

#: Renew the leases of the judge that reserved. KEYS: call records. ARGV: owner, lease ms.
RENEW = f"""
redis.replicate_commands()
{_NOW}
for _, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'owner') == ARGV[1] then
    redis.call('HSET', key, 'lease', string.format('%.0f', now + tonumber(ARGV[2])))
  end
end
"""

#: Replace a reservation by the actual cost, and store the score: all or nothing, once. KEYS: call record, spend (of the
#: day of the reservation), spend of all projects, number of paid answers. ARGV: owner, nano-dollars spent, score,
#: milliseconds to keep the record, and the number. Reservations of an older version are not in the spend of all
#: projects. Returns 1, or 0 if another judge owns the record by now: the money is corrected, the score is not stored.
SETTLE = """
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
"""

#: Store the score of an answer that cost nothing, unless a judge is working on it. KEYS: call record. ARGV: score,
#: milliseconds to keep it. Returns 1 or 0.
KEEP = """
redis.replicate_commands()
if redis.call('HGET', KEYS[1], 'state') then return 0 end
redis.call('HSET', KEYS[1], 'state', 'done', 'score', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""

#: Release the reservation of calls that were certainly not billed. KEYS: call record, spend, spend of all projects.
#: ARGV: owner. Returns 1 or 0.
RELEASE = """
redis.replicate_commands()
local state, owner, held = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'amount'))
if owner ~= ARGV[1] or state ~= 'reserved' then return 0 end
redis.call('DECRBY', KEYS[2], string.format('%.0f', tonumber(held or '0')))
if redis.call('HGET', KEYS[1], 'in_total') then redis.call('DECRBY', KEYS[3], string.format('%.0f', tonumber(held or '0'))) end
redis.call('DEL', KEYS[1])
return 1
"""

#: Finish entries of `events`: acknowledge them, and publish each score that was not published before. KEYS: events,
#: scores, then the call record of each score. ARGV: the Redis server that gave the entries, group, milliseconds to keep
#: a record, then three values for each entry: entry id, score or '', the index of its record in KEYS or 0 (negative:
#: another copy of the answer may have a record, this score has none). Returns the number of acknowledged entries.
PUBLISH = f"""
redis.replicate_commands()
{HERE}{REFUSE_OTHERS}
local done = 0
for i = 4, #ARGV, 3 do
  local record = tonumber(ARGV[i + 2])
  if redis.call('XACK', KEYS[1], ARGV[2], ARGV[i]) == 1 then
    done = done + 1
    local published = record ~= 0 and redis.call('HGET', KEYS[math.abs(record)], 'published')
    if ARGV[i + 1] ~= '' and not published then
      redis.call('XADD', KEYS[2], '*', '{FIELD}', ARGV[i + 1])
      if record > 0 then
        redis.call('HSET', KEYS[record], 'published', '1')
        redis.call('PEXPIRE', KEYS[record], ARGV[3])
      end
    end
  end
end
return done
"""

#: Check whether one more call may start within the limits of calls and tokens per minute. KEYS: calls by time, their
#: tokens. ARGV: call id, tokens, maximum calls, maximum tokens. Returns 0, or the milliseconds until the next check.
TAKE = f"""
redis.replicate_commands()
{_NOW}
local paused = tonumber(redis.call('HGET', KEYS[2], 'paused_until') or '0')
if paused > now then return paused - now end
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - 60000)
local total = tonumber(redis.call('HGET', KEYS[2], 'total') or '0')
for _, id in ipairs(old) do
  total = total - tonumber(redis.call('HGET', KEYS[2], id) or '0')
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[1], id)
end
redis.call('HSET', KEYS[2], 'total', string.format('%.0f', total))
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local most = math.min(tonumber(ARGV[3]), tonumber(redis.call('HGET', KEYS[2], 'limit_requests') or ARGV[3]))
local calls, tokens = redis.call('ZCARD', KEYS[1]), tonumber(ARGV[2])
if calls > 0 and (calls >= most or total + tokens > tonumber(ARGV[4])) then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return math.max(20, math.min(1000, tonumber(oldest[2]) + 60001 - now))
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], 'total', string.format('%.0f', total + tokens))
redis.call('PEXPIRE', KEYS[1], 120000)
redis.call('PEXPIRE', KEYS[2], 120000)
return 0
"""

#: Store a call's information about limits. KEYS: tokens of calls. ARGV: call id, tokens it used or '', milliseconds to
#: pause, limit or ''.
LEARN = f"""
redis.replicate_commands()
{_NOW}
local before = redis.call('HGET', KEYS[1], ARGV[1])
if before and ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'total', string.format('%.0f', tonumber(ARGV[2]) - tonumber(before)))
end
if tonumber(ARGV[3]) > 0 then redis.call('HSET', KEYS[1], 'paused_until', string.format('%.0f', now + tonumber(ARGV[3]))) end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'limit_requests', ARGV[4]) end
redis.call('PEXPIRE', KEYS[1], 120000)
"""

#: Publish an alert's transition once. KEYS: episode, alerts. ARGV: 'open' or 'close', JSON of the alert, start of the
#: episode, milliseconds to remember it. Returns 1, or 0 if the episode is already open or closed.
ALERT = f"""
redis.replicate_commands()
local begun = redis.call('GET', KEYS[1])
if ARGV[1] == 'open' then
  if begun then return 0 end
  redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
else
  if begun ~= ARGV[3] then return 0 end
  redis.call('DEL', KEYS[1])
end
redis.call('XADD', KEYS[2], '*', '{FIELD}', ARGV[2])
return 1
"""


#: Move waiting answers into a batch, and store the batch with its answers. KEYS: waiting, sent, batches, answers of
#: batches. ARGV: name, time, answers. Returns the answers it moved: an answer is in one batch only, however many judges
#: poll.
SEND = """
redis.replicate_commands()
local taken = {}
for i = 3, #ARGV do
  local answer = redis.call('HGET', KEYS[1], ARGV[i])
  if answer then
    redis.call('HSET', KEYS[2], ARGV[i], answer)
    redis.call('HDEL', KEYS[1], ARGV[i])
    taken[#taken + 1] = ARGV[i]
  end
end
if #taken > 0 then
  redis.call('HSET', KEYS[3], ARGV[1], '["",' .. ARGV[2] .. ']')
  redis.call('HSET', KEYS[4], ARGV[1], cjson.encode(taken))
end
return taken
"""

#: Return the answers of a batch that was certainly not accepted to the queue, and delete the batch. KEYS: as for SEND.
#: ARGV: name, answers.
UNSEND = """
redis.replicate_commands()
for i = 2, #ARGV do
  local answer = redis.call('HGET', KEYS[2], ARGV[i])
  if answer then
    redis.call('HSET', KEYS[1], ARGV[i], answer)
    redis.call('HDEL', KEYS[2], ARGV[i])
  end
end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
"""

#: Extend or release a lock, if it is still ours. KEYS: lock. ARGV: owner, milliseconds to keep it, or 0. Returns 1 or
#: 0.
LOCK = """
redis.replicate_commands()
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

#: Publish the score of an answer in a batch once. KEYS: sent answers, scores, call record. ARGV: answer, score. Returns
#: 1 or 0.
FETCHED = f"""
redis.replicate_commands()
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', '{FIELD}', ARGV[2])
redis.call('HSET', KEYS[3], 'published', '1')
return 1
"""
