-- Finish entries of `capture`: acknowledge, delete, and forward each to `events` or `failures`, all or nothing. An
-- entry that another consumer finished meanwhile is skipped, so a consumer that was presumed dead cannot publish twice.
-- KEYS: capture, events, failures, overflow counter, low watermark, the Redis that issued the last id.
-- ARGV: the Redis that gave the entries, group, shard, shards, 1 to wait for a writer, then three for each entry:
--   entry id; 'e' for an event, 'o' for an event that still needs an `id`, 'f' for a failure; JSON. (Lua copies a text
--   whenever it is changed, so the usual case passes it through unchanged.) An event gets its `id` from the counter if
--   its entry id is far ahead of the clock, or if its `id` would be at or below a published watermark, as after a
--   failover to a server with a slow clock. So does every event for a minute after a restart of Redis: it may have lost
--   the end of its log, and the store may already have ids from there. A Redis without any watermark has lost
--   everything, or is new; with 1 it issues no ids before a writer, which knows the store, has set one (see
--   `WATERMARK`).
-- Returns the number of finished entries, or -1 while it waits.

redis.replicate_commands()
local capture, events, failures, overflow, scrubbed_low_watermark_key, numbered = unpack(KEYS)
local group, shard, shards = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

--@include numbering
--@include here
--@include refuse_others
-- What was said before: no entry may get an `id` up to it any more.
local said = redis.call('GET', scrubbed_low_watermark_key)
if not said and ARGV[5] == '1' then return NUMBERS_UNKNOWN end
said = tonumber(said or '0')
local last = redis.call('GET', numbered)
if here ~= '' and last ~= here and (last or said > 0) then
  local newest = newest_id(capture)
  local direct = ahead(newest) and (now - EPOCH_MS) * PLACES or below(newest) + 1
  said = math.max(direct + UNKNOWN_MS * PLACES, math.max(said, counted(overflow)) + UNKNOWN_EVENTS * 2 * shards)
end

local function low_watermark()
  local first = redis.call('XRANGE', capture, '-', '+', 'COUNT', 1)[1]
  local entry_id = first and first[1] or newest_id(capture)
  if ahead(entry_id) then return math.max(said, counted(overflow)) end
  return math.max(said, below(entry_id) + (first and 0 or 1))
end

local low = low_watermark()

local count
local function overflow_id(entry_id)
  local ms, step = parts(entry_id), 2 * shards
  if ahead(entry_id) then ms = now end
  local floor = math.ceil(math.max((ms - EPOCH_MS) * PLACES + PLACES - 1, low) / step)
  count = math.max((count or tonumber(redis.call('GET', overflow) or '0')) + 1, floor)
  return string.format('%.0f', count * step + 2 * shard + 1)
end

local mine, ids = {}, {}
for i = 6, #ARGV, 3 do
  mine[#mine + 1], ids[#ids + 1] = i, ARGV[i]
end
if redis.call('XACK', capture, group, unpack(ids)) < #ids then
  -- Somebody else finished some of them. Finishing deletes an entry too, so those that are left are ours.
  mine, ids = {}, {}
  local seen = {}
  for i = 6, #ARGV, 3 do
    if not seen[ARGV[i]] and redis.call('XRANGE', capture, ARGV[i], ARGV[i])[1] then
      seen[ARGV[i]] = true
      mine[#mine + 1], ids[#ids + 1] = i, ARGV[i]
    end
  end
end
if #ids > 0 then redis.call('XDEL', capture, unpack(ids)) end
local jsons = {}
for n, i in ipairs(mine) do
  local what, json = ARGV[i + 1], ARGV[i + 2]
  if what == 'e' and (ahead(ARGV[i]) or below(ARGV[i]) < said) then
    what, json = 'o', '{' .. string.sub(json, string.find(json, ',', 1, true) + 1)
  end
  if what == 'o' then json = '{"id":' .. overflow_id(ARGV[i]) .. ',' .. string.sub(json, 2) end
  jsons[n] = json
end
local after = low_watermark()
if count then
  redis.call('SET', overflow, string.format('%.0f', count))
  after = math.max(after, count * 2 * shards + 2 * shard + 1) -- what is below it is numbered by the counter from now on
end
after = string.format('%.0f', after)
low = string.format('%.0f', low)
for n, i in ipairs(mine) do
  if ARGV[i + 1] == 'f' then
    redis.call('XADD', failures, '*', FIELD, jsons[n])
  else
    redis.call('XADD', events, '*', FIELD, jsons[n], FIELD_LOW, n == #mine and after or low)
  end
end
redis.call('SET', scrubbed_low_watermark_key, after)
if here ~= last then redis.call('SET', numbered, here) end
return #mine
