-- Close a trace: publish the events that were not sent yet, and drop its spans. The ids of its events are remembered for
-- a while, so that a late span sends none of them again, and later feedback finds them. Ids of answers are kept for longer,
-- in separate keys: the trace may open again, and then it has raw texts, which the gateway must not read.
-- KEYS: capture, open traces, the trace, bytes of all open traces, what made no event today, failures, spans, dead, the answer
--   of the trace, then the answer with each response.
-- ARGV: number of entries that the trace is expected to have, milliseconds of memory, its expected version, the JSON of its
--   failure if it cannot be assembled or '', its error class, the maximum bytes of `dead`, milliseconds until it is tried again
--   if `dead` is full, milliseconds of memory of answers, event id of the trace's answer or '', its rank (a lower one is
--   preferred), the version of the closed trace, so that a late span is added only by who read it, then three lists, each after
--   its length: events (id, JSON), targets of feedback (field, event id), counts of what made no event (name, number); then the
--   event id of the answer with each response.
-- Returns 1, or 0 if the trace has changed; -1 if its entries should be dead letters and `dead` is full: it stays open.

redis.replicate_commands()
local capture, open, trace, total, unassembled, failures, spans, dead, answer = unpack(KEYS, 1, 9)
if (redis.call('HGET', trace, 'entries') or '0') ~= ARGV[1] then return 0 end
if (redis.call('HGET', trace, 'version') or '') ~= ARGV[3] then return 0 end
if not redis.call('ZSCORE', open, trace) then return 0 end
local time = redis.call('TIME')
if ARGV[4] ~= '' then
  local taken = redis.call('MEMORY', 'USAGE', dead, 'SAMPLES', 0)
  if taken and taken > tonumber(ARGV[6]) then
    redis.call('ZADD', open, tonumber(time[1]) * 1000 + tonumber(ARGV[7]), trace) -- behind the others
    return -1
  end
  for i = 0, tonumber(ARGV[1]) - 1 do
    redis.call('XADD', dead, '*', FIELD, redis.call('HGET', trace, 'b' .. i), 'stream', spans,
               'entry_id', redis.call('HGET', trace, 'first'), 'stage', 'assembler', 'reason', 'other',
               'error_class', ARGV[5], 'deliveries', 1)
  end
end
local at = 12
local function list()
  local count = tonumber(ARGV[at])
  local first = at + 1
  at = first + count * 2
  return first, count
end
local events, n_events = list()
local targets, n_targets = list()
local counts, n_counts = list()
for i = 0, n_events - 1 do
  if redis.call('HSETNX', trace, 's' .. ARGV[events + 2 * i], 1) == 1 then
    redis.call('XADD', capture, '*', FIELD, ARGV[events + 2 * i + 1])
  end
end
for i = 0, n_targets - 1 do redis.call('HSET', trace, ARGV[targets + 2 * i], ARGV[targets + 2 * i + 1]) end
if ARGV[9] ~= '' and tonumber(ARGV[10]) <= tonumber(redis.call('HGET', trace, 'rank') or ARGV[10]) then
  redis.call('HSET', trace, 'rank', ARGV[10])
  redis.call('SET', answer, ARGV[9], 'PX', ARGV[8])
end
for i = 10, #KEYS do redis.call('SET', KEYS[i], ARGV[#ARGV - #KEYS + i], 'PX', ARGV[8]) end
for i = 0, n_counts - 1 do
  redis.call('HINCRBY', unassembled, ARGV[counts + 2 * i], ARGV[counts + 2 * i + 1])
end
if ARGV[4] ~= '' then redis.call('XADD', failures, '*', FIELD, ARGV[4]) end
if n_counts > 0 then redis.call('EXPIRE', unassembled, 172800) end
for i = 0, tonumber(ARGV[1]) - 1 do redis.call('HDEL', trace, 'b' .. i) end
if redis.call('DECRBY', total, redis.call('HGET', trace, 'bytes') or 0) < 0 then redis.call('SET', total, 0) end
redis.call('HDEL', trace, 'entries', 'opened', 'rooted', 'bytes', 'first')
redis.call('HSET', trace, 'closed', time[1], 'version', ARGV[11])
redis.call('PEXPIRE', trace, ARGV[2])
redis.call('ZREM', open, trace)
return 1
