-- Advance the closed watermark of a shard, which never decreases.
-- KEYS: events, low watermark, watermark.
-- ARGV: group; the watermark of the store ('' if unknown); the greatest `id` known to be issued; the Redis that was
--   last told so. A Redis that was not told, or lost this information, is told again: from then on it issues no `id` up
--   to either.
-- Returns the watermark as text, the id of the newest entry below which everything is stored ('' if none is left in
--   the stream), the id of this Redis, and 0 if it could not be told.

redis.replicate_commands()
--@include here
--@include record
local function field(entry)
  if not entry then return nil end
  for i = 1, #entry[2], 2 do
    if entry[2][i] == FIELD_LOW then return tonumber(entry[2][i + 1]) end
  end
end

local kept = tonumber(redis.call('GET', KEYS[3]) or '0')
local low = redis.call('GET', KEYS[2])
local stands, told = tonumber(ARGV[2]), 1
if stands then
  kept = math.max(kept, stands)
  if not low or tonumber(low) < stands or here ~= ARGV[4] then
    low = string.format('%.0f', math.max(tonumber(low or '0'), stands, tonumber(ARGV[3])))
    local set = redis.pcall('SET', KEYS[2], low)
    if type(set) == 'table' and set.err then told = 0 end
  end
end
low = tonumber(low or '0')
local function answer(entry_id)
  return {string.format('%.0f', kept), entry_id, here, told}
end
local delivered
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  group = record(group)
  if group.name == ARGV[1] then delivered = group['last-delivered-id'] end
end
if not delivered then return answer('') end
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1)[1]
local stored
if pending then
  stored = redis.call('XREVRANGE', KEYS[1], '(' .. pending[1], '-', 'COUNT', 1)[1]
else
  stored = redis.call('XREVRANGE', KEYS[1], delivered, '-', 'COUNT', 1)[1]
  local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  if not newest or (stored and stored[1] == newest[1]) then kept = math.max(kept, low) end
end
kept = math.max(kept, field(stored) or 0)
redis.pcall('SET', KEYS[3], string.format('%.0f', kept)) -- not while memory is full; trimming goes on
return answer(stored and stored[1] or '')
