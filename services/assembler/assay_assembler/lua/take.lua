-- Add spans to an open trace, publish the events that need no more of them, and finish the entries, all or nothing.
-- KEYS: spans, capture, open traces, the trace, bytes of all open traces.
-- ARGV: the Redis that gave the entries, group, number of entries that the trace is expected to have, 1 if all its spans
--   have their roots, number of its spans, then three times in milliseconds (grace after the roots, idle, longest), most
--   spans and most bytes of a trace, its expected version and its next one, then two lists, each after its length: entries (id, data), events (id, JSON).
-- Returns {'ok', 1 if the trace was closed before}, {'changed'} if another replica was first, or {'gone', ids...} for
--   entries that are already finished.

redis.replicate_commands()
local spans, capture, open, trace, total = unpack(KEYS)
--@include here
--@include refuse_others
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if (redis.call('HGET', trace, 'entries') or '0') ~= ARGV[3] then return {'changed'} end
if (redis.call('HGET', trace, 'version') or '') ~= ARGV[11] then return {'changed'} end

local at = 13
local function list()
  local count = tonumber(ARGV[at])
  local first = at + 1
  at = first + count * 2
  return first, count
end
local entries, n_entries = list()
local events, n_events = list()
local gone = {'gone'}
for i = 0, n_entries - 1 do
  local id = ARGV[entries + 2 * i]
  if not redis.call('XPENDING', spans, ARGV[2], id, id, 1)[1] then gone[#gone + 1] = id end
end
if #gone > 1 then return gone end

local late = redis.call('HEXISTS', trace, 'closed')
local held, size = tonumber(ARGV[3]), 0
for i = 0, n_entries - 1 do
  local id, data = ARGV[entries + 2 * i], ARGV[entries + 2 * i + 1]
  redis.call('HSET', trace, 'b' .. (held + i), data)
  size = size + #data
  redis.call('XACK', spans, ARGV[2], id)
  redis.call('XDEL', spans, id)
end
for i = 0, n_events - 1 do
  if redis.call('HSETNX', trace, 's' .. ARGV[events + 2 * i], 1) == 1 then
    redis.call('XADD', capture, '*', FIELD, ARGV[events + 2 * i + 1])
  end
end
redis.call('HSET', trace, 'entries', held + n_entries, 'version', ARGV[12])
redis.call('HSETNX', trace, 'first', ARGV[entries])
redis.call('HSETNX', trace, 'opened', now)
if ARGV[4] == '1' then redis.call('HSETNX', trace, 'rooted', now) else redis.call('HDEL', trace, 'rooted') end
local bytes = redis.call('HINCRBY', trace, 'bytes', size)
redis.call('INCRBY', total, size)
redis.call('PERSIST', trace)
local rooted = redis.call('HGET', trace, 'rooted')
local due = rooted and tonumber(rooted) + tonumber(ARGV[6]) or now + tonumber(ARGV[7])
due = math.min(due, tonumber(redis.call('HGET', trace, 'opened')) + tonumber(ARGV[8]))
if tonumber(ARGV[5]) >= tonumber(ARGV[9]) or bytes >= tonumber(ARGV[10]) then due = now end
redis.call('ZADD', open, string.format('%.0f', due), trace)
return {'ok', late}
