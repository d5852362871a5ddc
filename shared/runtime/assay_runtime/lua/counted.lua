-- Correct the number of entries that a group has read.
-- KEYS: stream.
-- ARGV: group; the id up to which entries were counted, and their number; the state of the stream when the count
--   began ('' at first).
-- Returns the number of unread entries, or -1 and the id up to which to count, '' if the stream was trimmed
--   meanwhile; and the state.

redis.replicate_commands()
--@include record
local length = redis.call('XLEN', KEYS[1])
local added = record(redis.call('XINFO', 'STREAM', KEYS[1]))['entries-added'] or 0
-- Only what leaves the stream changes this.
local gone = string.format('%.0f', added - length)
if ARGV[4] ~= '' and ARGV[4] ~= gone then return {-1, '', gone} end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  group = record(group)
  if group.name == ARGV[1] then
    local delivered, read = group['last-delivered-id'], group['entries-read']
    if ARGV[4] == '' or delivered ~= ARGV[2] then return {-1, delivered, gone} end
    local is = added - length + tonumber(ARGV[3])
    -- A user of an earlier version may not; then only the number returned is right.
    if read ~= is then redis.pcall('XGROUP', 'SETID', KEYS[1], ARGV[1], delivered, 'ENTRIESREAD', string.format('%.0f', is)) end
    return {length - tonumber(ARGV[3]), delivered, gone}
  end
end
return {0, '', gone}
