-- Finish entries that cannot be decoded: acknowledge, delete, and record a failure for each.
-- KEYS: spans, failures.
-- ARGV: the Redis that gave the entries, group, then two for each entry: entry id, JSON of its failure.
-- Returns the number of finished entries.

redis.replicate_commands()
--@include here
--@include refuse_others
local done = 0
for i = 3, #ARGV, 2 do
  if redis.call('XACK', KEYS[1], ARGV[2], ARGV[i]) == 1 then
    done = done + 1
    redis.call('XDEL', KEYS[1], ARGV[i])
    redis.call('XADD', KEYS[2], '*', FIELD, ARGV[i + 1])
  end
end
return done
