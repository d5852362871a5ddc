-- Trim a stream up to what all its groups have finished, and never what its own service has not: queried and trimmed in
-- one step, on one server, because two connections may reach a master and its replaced predecessor.
-- KEYS: stream.
-- ARGV: group of the own service; the id below which that group needs nothing ('' for what it has finished); the id
--   below which nothing is kept for other groups ('' for none), or the number of entries kept for them, the oldest
--   trimmed first ('' for all), and how many of them may be trimmed in one step.
-- Returns the id below which it trimmed ('' without the own group).

redis.replicate_commands()
--@include record
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
