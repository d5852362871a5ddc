"""The atomic steps, as named Lua scripts. The keys of each share a hash tag, for Redis Cluster.

`redis.replicate_commands()` makes Redis 6.2 write effects instead of scripts to its log; later versions always do.
"""

from assay_runtime.same_redis import HERE, REFUSE_OTHERS
from assay_schema.ids import AHEAD_MAX_MS, EPOCH_MS, LAST_MS, PLACES
from assay_schema.streams import FIELD, FIELD_LOW

#: How far above all known ids a Redis starts that has not issued ids before, because its predecessor may have issued
#: more. In milliseconds of the clock: more than a log loses at its end, and longer than a replaced master continues
#: (`min-replicas-max-lag`).
UNKNOWN_MS = 60_000
#: The same margin for the counter, in events of a shard.
UNKNOWN_EVENTS = 1_000_000
#: A step of `STRIDE` ends beyond this many bytes.
STRIDE_BYTES = 4 * 1024 * 1024
#: Reply of `FORWARD` instead of a count: the store's ids are not known yet.
NUMBERS_UNKNOWN = -1

#: The commands XINFO return names and values in turn.
_RECORD = """local function record(answer)
  local found = {}
  for i = 1, #answer, 2 do found[answer[i]] = answer[i + 1] end
  return found
end
"""

#: Position of an entry in the numbering of rows. Needs the locals `shard` and `shards`.
_PLACES = f"""{_RECORD}
local function parts(entry_id)
  local ms, sequence = string.match(entry_id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(sequence)
end

-- The greatest number that is below the row id of this entry and of every later one.
local function below(entry_id)
  local ms, sequence = parts(entry_id)
  local place = math.min((sequence * shards + shard) * 2, {PLACES - 1})
  return (ms - {EPOCH_MS}) * {PLACES} + place - 1
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- No clock is wrong by so much: a producer chose this entry's id, or that of one before it.
local function ahead(entry_id)
  return parts(entry_id) > now + {AHEAD_MAX_MS}
end

-- The greatest id that the counter has given; 0 if none.
local function counted(key)
  local count = redis.call('GET', key)
  return count and count * 2 * shards + 2 * shard + 1 or 0
end

local function newest_id(key)
  return record(redis.call('XINFO', 'STREAM', key))['last-generated-id']
end

if now > {LAST_MS} then return redis.error_reply('CLOCK the clock of this Redis is beyond the year 2058; set it right') end
"""

#: Finish entries of `capture`: acknowledge, delete, and forward each to `events` or `failures`, all or nothing. An
#: entry that another consumer finished meanwhile is skipped, so a consumer that was presumed dead cannot publish twice.
#: KEYS: capture, events, failures, overflow counter, low watermark, the Redis that issued the last id. ARGV: the Redis
#: that gave the entries, group, shard, shards, 1 to wait for a writer, then three for each entry: entry id; 'e' for an
#: event, 'o' for an event that still needs an `id`, 'f' for a failure; JSON. (Lua copies a text whenever it is changed,
#: so the usual case passes it through unchanged.) An event gets its `id` from the counter if its entry id is far ahead
#: of the clock, or if its `id` would be at or below a published watermark, as after a failover to a server with a slow
#: clock. So does every event for a minute after a restart of Redis: it may have lost the end of its log, and the store
#: may already have ids from there. A Redis without any watermark has lost everything, or is new; with 1 it issues no
#: ids before a writer, which knows the store, has set one (see `WATERMARK`). Returns the number of finished entries, or
#: -1 while it waits.
FORWARD = f"""
redis.replicate_commands()
local capture, events, failures, overflow, low_key, numbered = unpack(KEYS)
local group, shard, shards = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

{_PLACES}{HERE}{REFUSE_OTHERS}
-- What was said before: no entry may get an `id` up to it any more.
local said = redis.call('GET', low_key)
if not said and ARGV[5] == '1' then return {NUMBERS_UNKNOWN} end
said = tonumber(said or '0')
local last = redis.call('GET', numbered)
if here ~= '' and last ~= here and (last or said > 0) then
  local newest = newest_id(capture)
  local direct = ahead(newest) and (now - {EPOCH_MS}) * {PLACES} or below(newest) + 1
  said = math.max(direct + {UNKNOWN_MS * PLACES}, math.max(said, counted(overflow)) + {UNKNOWN_EVENTS} * 2 * shards)
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
  local floor = math.ceil(math.max((ms - {EPOCH_MS}) * {PLACES} + {PLACES - 1}, low) / step)
  count = math.max((count or tonumber(redis.call('GET', overflow) or '0')) + 1, floor)
  return string.format('%.0f', count * step + 2 * shard + 1)
end

local mine, ids = {{}}, {{}}
for i = 6, #ARGV, 3 do
  mine[#mine + 1], ids[#ids + 1] = i, ARGV[i]
end
if redis.call('XACK', capture, group, unpack(ids)) < #ids then
  -- Somebody else finished some of them. Finishing deletes an entry too, so those that are left are ours.
  mine, ids = {{}}, {{}}
  local seen = {{}}
  for i = 6, #ARGV, 3 do
    if not seen[ARGV[i]] and redis.call('XRANGE', capture, ARGV[i], ARGV[i])[1] then
      seen[ARGV[i]] = true
      mine[#mine + 1], ids[#ids + 1] = i, ARGV[i]
    end
  end
end
if #ids > 0 then redis.call('XDEL', capture, unpack(ids)) end
local jsons = {{}}
for n, i in ipairs(mine) do
  local what, json = ARGV[i + 1], ARGV[i + 2]
  if what == 'e' and (ahead(ARGV[i]) or below(ARGV[i]) < said) then
    what, json = 'o', '{{' .. string.sub(json, string.find(json, ',', 1, true) + 1)
  end
  if what == 'o' then json = '{{"id":' .. overflow_id(ARGV[i]) .. ',' .. string.sub(json, 2) end
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
    redis.call('XADD', failures, '*', '{FIELD}', jsons[n])
  else
    redis.call('XADD', events, '*', '{FIELD}', jsons[n], '{FIELD_LOW}', n == #mine and after or low)
  end
end
redis.call('SET', low_key, after)
if here ~= last then redis.call('SET', numbered, here) end
return #mine
"""

#: Acknowledge entries of a stream that several groups read; trimming is a separate step. KEYS: stream, failures. ARGV:
#: the Redis that gave the entries, group, then two for each entry: entry id, JSON of its failure or ''. Returns the
#: number of acknowledged entries.
SETTLE = f"""
redis.replicate_commands()
{HERE}{REFUSE_OTHERS}
local stored, done = {{}}, 0
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    stored[#stored + 1] = ARGV[i]
  elseif redis.call('XACK', KEYS[1], ARGV[2], ARGV[i]) == 1 then
    done = done + 1
    redis.call('XADD', KEYS[2], '*', '{FIELD}', ARGV[i + 1])
  end
end
if #stored > 0 then done = done + redis.call('XACK', KEYS[1], ARGV[2], unpack(stored)) end
return done
"""

#: Dead-letter an entry: move it from a stream to `dead` and record the failure, unless another consumer finished it. If
#: other groups read the stream too, it is copied: they may not have read it yet. KEYS: stream, dead, failures. ARGV:
#: the Redis that gave the entry, group, entry id, stage, reason, error class, deliveries, JSON of the failure, and the
#: maximum bytes of `dead`. Returns 1 or 0; -1 if `dead` is full, and the entry stays unfinished.
BURY = f"""
redis.replicate_commands()
{HERE}{REFUSE_OTHERS}
local entry = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])[1]
local taken = redis.pcall('MEMORY', 'USAGE', KEYS[2], 'SAMPLES', 0) -- a user of an older version has no right to it
if type(taken) == 'number' and taken > tonumber(ARGV[9]) then return -1 end
if redis.call('XACK', KEYS[1], ARGV[2], ARGV[3]) == 0 or not entry then return 0 end
local fields = entry[2]
for _, value in ipairs({{'stream', KEYS[1], 'entry_id', ARGV[3], 'stage', ARGV[4], 'reason', ARGV[5], 'error_class', ARGV[6],
                        'deliveries', ARGV[7]}}) do
  fields[#fields + 1] = value
end
redis.call('XADD', KEYS[2], '*', unpack(fields))
redis.call('XADD', KEYS[3], '*', '{FIELD}', ARGV[8])
-- Services that only read the stream may not delete; then the one that empties it does.
if #redis.call('XINFO', 'GROUPS', KEYS[1]) == 1 then redis.pcall('XDEL', KEYS[1], ARGV[3]) end
return 1
"""

#: Move alerts from the inbox to their stream. The copy is made first: if Redis has no memory for it, the alert stays. A
#: document that is not JSON with its own episode and transition (UUIDs of version 8; services make version 5) is
#: discarded: a submitted alert must not end or hide one of a service. KEYS: inbox, alerts. ARGV: maximum number of
#: alerts. Returns the numbers of moved and discarded alerts.
ADMIT = f"""
redis.replicate_commands()
local x = '%x%x%x%x'
local own = '^' .. x .. x .. '%-' .. x .. '%-8%x%x%x%-' .. x .. '%-' .. x .. x .. x .. '$'
local function is_own(id) return type(id) == 'string' and string.find(id, own) ~= nil end
local moved, refused = 0, 0
for _ = 1, tonumber(ARGV[1]) do
  local text = redis.call('LINDEX', KEYS[1], 0)
  if not text then break end
  local read, alert = pcall(cjson.decode, text)
  if read and type(alert) == 'table' and is_own(alert.alert_id) and is_own(alert.transition_id) then
    redis.call('XADD', KEYS[2], '*', '{FIELD}', text)
    moved = moved + 1
  else
    refused = refused + 1
  end
  redis.call('LPOP', KEYS[1])
end
return {{moved, refused}}
"""

#: Requeue dead letters: each leaves `dead` in the same step in which it enters its stream, and only if it is still
#: there, so concurrent requeues send it once. The copy is made first: if Redis has no memory for it, the letter stays.
#: KEYS: dead, capture, failures, alerts. ARGV: three for each letter: its id in `dead`; 'c', 'f' or 'a', the target
#: stream; its data. Returns 1 or 0 for each letter, in order: whether it was moved.
REQUEUE = f"""
redis.replicate_commands()
local streams, moved = {{c = KEYS[2], f = KEYS[3], a = KEYS[4]}}, {{}}
for i = 1, #ARGV, 3 do
  local there = redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])[1]
  if there then
    redis.call('XADD', streams[ARGV[i + 1]], '*', '{FIELD}', ARGV[i + 2])
    redis.call('XDEL', KEYS[1], ARGV[i])
  end
  moved[#moved + 1] = there and 1 or 0
end
return moved
"""

#: Advance the closed watermark of a shard, which never decreases. KEYS: events, low watermark, watermark. ARGV: group;
#: the watermark of the store ('' if unknown); the greatest `id` known to be issued; the Redis that was last told so. A
#: Redis that was not told, or lost this information, is told again: from then on it issues no `id` up to either.
#: Returns the watermark as text, the id of the newest entry below which everything is stored ('' if none is left in the
#: stream), the id of this Redis, and 0 if it could not be told.
WATERMARK = f"""
redis.replicate_commands()
{HERE}{_RECORD}
local function field(entry)
  if not entry then return nil end
  for i = 1, #entry[2], 2 do
    if entry[2][i] == '{FIELD_LOW}' then return tonumber(entry[2][i + 1]) end
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
  return {{string.format('%.0f', kept), entry_id, here, told}}
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
"""

#: Trim a stream up to what all its groups have finished, and never what its own service has not: queried and trimmed in
#: one step, on one server, because two connections may reach a master and its replaced predecessor. KEYS: stream. ARGV:
#: group of the own service; the id below which that group needs nothing ('' for what it has finished); the id below
#: which nothing is kept for other groups ('' for none), or the number of entries kept for them, the oldest trimmed
#: first ('' for all), and how many of them may be trimmed in one step. Returns the id below which it trimmed (''
#: without the own group).
TRIM = f"""
redis.replicate_commands()
{_RECORD}
local function before(one, other)
  local ms, sequence = string.match(one, '(%d+)-(%d+)')
  local its_ms, its_sequence = string.match(other, '(%d+)-(%d+)')
  if #ms ~= #its_ms then return #ms < #its_ms end
  if ms ~= its_ms then return ms < its_ms end
  if #sequence ~= #its_sequence then return #sequence < #its_sequence end
  return sequence < its_sequence
end
local function least(one, other) return before(other, one) and other or one end
local function greatest(one, other) return before(one, other) and other or one end

local own, others
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  group = record(group)
  local unfinished = group['last-delivered-id']
  local pending = redis.call('XPENDING', KEYS[1], group.name, '-', '+', 1)[1]
  if pending then unfinished = least(pending[1], unfinished) end
  if group.name == ARGV[1] then own = unfinished else others = others and least(others, unfinished) or unfinished end
end
if not own then return '' end
local wanted = ARGV[2] ~= '' and ARGV[2] or own
local floor = others and least(wanted, others) or wanted
if ARGV[3] ~= '' then
  floor = greatest(floor, ARGV[3])
elseif ARGV[4] ~= '' and floor ~= own then
  local excess = redis.call('XLEN', KEYS[1]) - ARGV[4]
  if excess > 0 then
    local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', math.min(excess, ARGV[5]))
    floor = greatest(floor, oldest[#oldest][1])
  end
end
floor = least(floor, own)
redis.call('XTRIM', KEYS[1], 'MINID', '~', floor, 'LIMIT', 0)
return floor
"""

#: Walk a stream without sending its entries; only a few are in memory at once. KEYS: stream. ARGV: first and last id,
#: maximum entries. Returns the number of entries up to the last one visited, their bytes, and its id ('' if there are
#: none).
STRIDE = f"""
local first, found, bytes, last = ARGV[1], 0, 0, ''
while found < tonumber(ARGV[3]) and bytes < {STRIDE_BYTES} do
  local entries = redis.call('XRANGE', KEYS[1], first, ARGV[2], 'COUNT', math.min(16, ARGV[3] - found))
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do bytes = bytes + #entry[2][2] end
  found, last = found + #entries, entries[#entries][1]
  first = '(' .. last
end
return {{found, bytes, last}}
"""

#: Correct the number of entries that a group has read. KEYS: stream. ARGV: group; the id up to which entries were
#: counted, and their number; the state of the stream when the count began ('' at first). Returns the number of unread
#: entries, or -1 and the id up to which to count, '' if the stream was trimmed meanwhile; and the state.
COUNTED = f"""
redis.replicate_commands()
{_RECORD}
local length = redis.call('XLEN', KEYS[1])
local added = record(redis.call('XINFO', 'STREAM', KEYS[1]))['entries-added'] or 0
-- Only what leaves the stream changes this.
local gone = string.format('%.0f', added - length)
if ARGV[4] ~= '' and ARGV[4] ~= gone then return {{-1, '', gone}} end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  group = record(group)
  if group.name == ARGV[1] then
    local delivered, read = group['last-delivered-id'], group['entries-read']
    if ARGV[4] == '' or delivered ~= ARGV[2] then return {{-1, delivered, gone}} end
    local is = added - length + tonumber(ARGV[3])
    -- A user of an earlier version may not; then only the number returned is right.
    if read ~= is then redis.pcall('XGROUP', 'SETID', KEYS[1], ARGV[1], delivered, 'ENTRIESREAD', string.format('%.0f', is)) end
    return {{length - tonumber(ARGV[3]), delivered, gone}}
  end
end
return {{0, '', gone}}
"""

#: Advance the low watermark of a quiet shard with the clock; otherwise one quiet shard would hold back every export.
#: `XSETID` keeps later entries above it, even if the clock is set back. If a producer chose an id far ahead of the
#: clock, the empty stream and its group return to the clock: later entries are numbered as if that entry had not
#: existed. KEYS: capture, low watermark, overflow counter, the Redis that issued the last id. ARGV: shard, shards,
#: group, 1 to wait for a writer (see `FORWARD`). Returns 1 if the shard was quiet.
QUIET = f"""
redis.replicate_commands()
local shard, shards = tonumber(ARGV[1]), tonumber(ARGV[2])
{_PLACES}{HERE}
local said = redis.call('GET', KEYS[2])
if redis.call('XLEN', KEYS[1]) > 0 or (not said and ARGV[4] == '1') then return 0 end
local last = newest_id(KEYS[1])
said = tonumber(said or '0')
if said == 0 and not redis.call('GET', KEYS[4]) then redis.pcall('SET', KEYS[4], here) end -- nothing was ever given
local target, back = now, false
if ahead(last) then
  back = true
  target = math.max(now, math.floor(math.max(said, counted(KEYS[3])) / {PLACES}) + {EPOCH_MS} + 1)
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
"""

#: Remove group members without pending entries, so that restarts under new names leave none behind. A living one is
#: created again as it reads. KEYS: stream. ARGV: group, milliseconds without activity, a name or '' for any. Returns
#: their number.
FORGET = f"""{_RECORD}
local forgotten = 0
for _, member in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  member = record(member)
  if member.pending == 0 and member.idle >= tonumber(ARGV[2]) and (ARGV[3] == '' or member.name == ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], member.name)
    forgotten = forgotten + 1
  end
end
return forgotten
"""
