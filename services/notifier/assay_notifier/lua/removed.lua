-- Count alerts that were removed before the group read them, and remember how many were reported.
-- KEYS: alerts, episodes.
-- ARGV: group. Stores with the episodes the Redis with consistent counts and the number of removed alerts already
--   reported.
-- Returns the number of newly removed alerts.

redis.replicate_commands()
local added, here = 0, string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
if info.err then return 0 end
for i = 1, #info, 2 do
  if info[i] == 'entries-added' then added = info[i + 1] end
end
local read
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local of = {}
  for i = 1, #group, 2 do of[group[i]] = group[i + 1] end
  if of.name == ARGV[1] then read = of['entries-read'] end
end
if not read or here == '' then return 0 end
local missing, told = added - redis.call('XLEN', KEYS[1]) - read, tonumber(redis.call('HGET', KEYS[2], '/removed') or '0')
if missing <= 0 then
  if redis.call('HGET', KEYS[2], '/redis') ~= here then redis.call('HSET', KEYS[2], '/redis', here) end
  if told > 0 then redis.call('HDEL', KEYS[2], '/removed') end
  return 0
end
if redis.call('HGET', KEYS[2], '/redis') ~= here or missing <= told then return 0 end
redis.call('HSET', KEYS[2], '/removed', missing)
return missing - told
