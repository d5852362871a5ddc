-- Walk a stream without sending its entries; only a few are in memory at once.
-- KEYS: stream.
-- ARGV: first and last id, maximum entries.
-- Returns the number of entries up to the last one visited, their bytes, and its id ('' if there are none).

local first, found, bytes, last = ARGV[1], 0, 0, ''
while found < tonumber(ARGV[3]) and bytes < STRIDE_BYTES do
  local entries = redis.call('XRANGE', KEYS[1], first, ARGV[2], 'COUNT', math.min(16, ARGV[3] - found))
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do bytes = bytes + #entry[2][2] end
  found, last = found + #entries, entries[#entries][1]
  first = '(' .. last
end
return {found, bytes, last}
