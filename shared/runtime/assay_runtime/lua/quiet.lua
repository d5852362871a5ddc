-- Advance the low watermark of a quiet shard with the clock; otherwise one quiet shard would hold back every export.
-- `XSETID` keeps later entries above it, even if the clock is set back. If a producer chose an id far ahead of the
-- clock, the empty stream and its group return to the clock: later entries are numbered as if that entry had not
-- existed.
-- KEYS: capture, low watermark, overflow counter, the Redis that issued the last id.
-- ARGV: shard, shards, group, 1 to wait for a writer (see `FORWARD`).
-- Returns 1 if the shard was quiet.

redis.replicate_commands()
local shard, shards = tonumber(ARGV[1]), tonumber(ARGV[2])
--@include numbering
--@include here
local said = redis.call('GET', KEYS[2])
if redis.call('XLEN', KEYS[1]) > 0 or (not said and ARGV[4] == '1') then return 0 end
local last = newest_id(KEYS[1])
said = tonumber(said or '0')
if said == 0 and not redis.call('GET', KEYS[4]) then redis.pcall('SET', KEYS[4], here) end -- nothing was ever given
local target, back = now, false
if ahead(last) then
  back = true
  target = math.max(now, math.floor(math.max(said, counted(KEYS[3])) / PLACES) + EPOCH_MS + 1)
end
local target_id = string.format('%.0f', target) .. '-0'
if back then
  -- The group first: entries below what it was given would never be read.
  local moved = redis.pcall('XGROUP', 'SETID', KEYS[1], ARGV[3], target_id)
  if type(moved) == 'table' and moved.err then return 0 end
end
if back or target > parts(last) then
  local moved = redis.pcall('XSETID', KEYS[1], target_id) -- not while memory is full
  if back and moved.err and string.find(moved.err, 'max_deleted_entry_id', 1, true) then
    -- Valkey lets no stream go back below what was deleted from it, so the empty one gives way to a new one.
    local deleted = redis.pcall('DEL', KEYS[1])
    if type(deleted) == 'table' then return 0 end
    redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[3], target_id, 'MKSTREAM')
    moved = redis.call('XSETID', KEYS[1], target_id)
  end
  if moved.err then return 0 end
  last = target_id
end
redis.pcall('SET', KEYS[2], string.format('%.0f', math.max(said, below(last) + 1)))
return 1
