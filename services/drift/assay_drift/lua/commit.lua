-- Change the state, publish transitions and finish their entries, if the state is still at the expected version.
-- KEYS: state, seen, acknowledged, alerts, failures, stream (any of them when no entries are finished).
-- ARGV: the Redis server that gave the entries ('' for none), version, group, maximum of seen samples, then five
--   lists, each after its length: entries (id, JSON of a failure or ''), fields (name, '1' and value or '0' and ''),
--   samples (id, time), alerts (JSON), acknowledged ids.
-- Returns {'ok', n}, {'version'} if another replica committed first, or {'gone', ids...} for entries that are already
--   finished.

redis.replicate_commands()
if ARGV[5] ~= '0' then
--@include here
--@include refuse_others
end
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[2] then return {'version'} end
local at = 5
local function list(width)
  local count = tonumber(ARGV[at])
  local first = at + 1
  at = first + count * width
  return first, count
end
local entries, n_entries = list(2)
local fields, n_fields = list(3)
local seen, n_seen = list(2)
local alerts, n_alerts = list(1)
local acknowledged, n_acknowledged = list(1)
local gone = {'gone'}
for i = 0, n_entries - 1 do
  local id = ARGV[entries + 2 * i]
  if not redis.call('XPENDING', KEYS[6], ARGV[3], id, id, 1)[1] then gone[#gone + 1] = id end
end
if #gone > 1 then return gone end
for i = 0, n_alerts - 1 do redis.call('XADD', KEYS[4], '*', FIELD, ARGV[alerts + i]) end
for i = 0, n_fields - 1 do
  local name = ARGV[fields + 3 * i]
  if ARGV[fields + 3 * i + 1] == '1' then
    redis.call('HSET', KEYS[1], name, ARGV[fields + 3 * i + 2])
  else
    redis.call('HDEL', KEYS[1], name)
  end
end
for i = 0, n_seen - 1 do redis.call('ZADD', KEYS[2], ARGV[seen + 2 * i + 1], ARGV[seen + 2 * i]) end
if n_seen > 0 then redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[4])) end
for i = 0, n_acknowledged - 1 do redis.call('HDEL', KEYS[3], ARGV[acknowledged + i]) end
for i = 0, n_entries - 1 do
  if ARGV[entries + 2 * i + 1] ~= '' then redis.call('XADD', KEYS[5], '*', FIELD, ARGV[entries + 2 * i + 1]) end
  redis.call('XACK', KEYS[6], ARGV[3], ARGV[entries + 2 * i])
end
redis.call('HINCRBY', KEYS[1], 'version', 1)
return {'ok', n_entries}
