-- The data of claimed entries, as many as fit in a read. Missing entries are acknowledged in the same step: the next
-- command of a connection may reach a replaced master that still has them.
-- KEYS: stream.
-- ARGV: group, field, bytes that are enough, ids.
-- Returns the id of this Redis, and a text for each of the first ids, or nil for a missing entry; at least one.

redis.replicate_commands()
--@include here
local found, bytes = {here}, 0
for i = 4, #ARGV do
  local entry, data = redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])[1], false
  if entry then
    data = ''
    for n = 1, #entry[2], 2 do
      if entry[2][n] == ARGV[2] then data = entry[2][n + 1] end
    end
    bytes = bytes + #data
  else
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  end
  found[#found + 1] = data
  if bytes >= tonumber(ARGV[3]) then break end
end
return found
