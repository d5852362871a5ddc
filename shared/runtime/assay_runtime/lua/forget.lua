-- Remove group members without pending entries, so that restarts under new names leave none behind. A living one is
-- created again as it reads.
-- KEYS: stream.
-- ARGV: group, milliseconds without activity, a name or '' for any.
-- Returns their number.

--@include record
local forgotten = 0
for _, member in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  member = record(member)
  if member.pending == 0 and member.idle >= tonumber(ARGV[2]) and (ARGV[3] == '' or member.name == ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], member.name)
    forgotten = forgotten + 1
  end
end
return forgotten
