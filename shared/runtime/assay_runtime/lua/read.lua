-- New entries for a member of a group.
-- KEYS: stream.
-- ARGV: group, consumer, field, maximum entries, entries of a step, bytes that are enough for a read.
-- Returns id and data of each, in turn, then 1 if there may be more, else 0, and the id of this Redis server.

--@include here
local field, most, step, enough = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local read, n, bytes, more = {}, 0, 0, 1
while more == 1 and n < 2 * most and bytes < enough do
  local answer = redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', step, 'STREAMS', KEYS[1], '>')
  if answer and answer.err then
    if n == 0 then return answer end
    answer = false -- what was read before it is ours all the same
  end
  local entries = answer and answer[1][2] or {}
  for _, entry in ipairs(entries) do
    local fields, data = entry[2], ''
    for i = 1, #fields, 2 do
      if fields[i] == field then data = fields[i + 1] end
    end
    read[n + 1], read[n + 2] = entry[1], data
    n, bytes = n + 2, bytes + #data
  end
  if #entries < step then more = 0 end
end
read[n + 1], read[n + 2] = more, here
return read
