-- Position of an entry in the numbering of rows. Needs the locals `shard` and `shards`.

--@include record
local function parts(entry_id)
  local ms, sequence = string.match(entry_id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(sequence)
end

-- The greatest number that is below the row id of this entry and of every later one.
local function below(entry_id)
  local ms, sequence = parts(entry_id)
  local place = math.min((sequence * shards + shard) * 2, PLACES - 1)
  return (ms - EPOCH_MS) * PLACES + place - 1
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- No clock is wrong by so much: a producer chose this entry's id, or that of one before it.
local function ahead(entry_id)
  return parts(entry_id) > now + AHEAD_MAX_MS
end

-- The greatest id that the counter has given; 0 if none.
local function counted(key)
  local count = redis.call('GET', key)
  return count and count * 2 * shards + 2 * shard + 1 or 0
end

local function newest_id(key)
  return record(redis.call('XINFO', 'STREAM', key))['last-generated-id']
end

if now > LAST_MS then return redis.error_reply('CLOCK the clock of this Redis is beyond the year 2058; set it right') end
