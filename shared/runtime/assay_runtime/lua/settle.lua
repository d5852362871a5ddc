-- Acknowledge entries of a stream that several groups read; trimming is a separate step.
-- KEYS: stream, failures.
-- ARGV: the Redis that gave the entries, group, then two for each entry: entry id, JSON of its failure or ''.
-- Returns the number of acknowledged entries.

redis.replicate_commands()
--@include here
--@include refuse_others
local stored, done = {}, 0
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    stored[#stored + 1] = ARGV[i]
  elseif redis.call('XACK', KEYS[1], ARGV[2], ARGV[i]) == 1 then
    done = done + 1
    redis.call('XADD', KEYS[2], '*', FIELD, ARGV[i + 1])
  end
end
if #stored > 0 then done = done + redis.call('XACK', KEYS[1], ARGV[2], unpack(stored)) end
return done
