-- Move waiting answers into a batch, and store the batch with its answers.
-- KEYS: waiting, sent, batches, answers of batches.
-- ARGV: name, time, answers.
-- Returns the answers it moved: an answer is in one batch only, however many judges poll.

redis.replicate_commands()
local taken = {}
for i = 3, #ARGV do
  local answer = redis.call('HGET', KEYS[1], ARGV[i])
  if answer then
    redis.call('HSET', KEYS[2], ARGV[i], answer)
    redis.call('HDEL', KEYS[1], ARGV[i])
    taken[#taken + 1] = ARGV[i]
  end
end
if #taken > 0 then
  redis.call('HSET', KEYS[3], ARGV[1], '["",' .. ARGV[2] .. ']')
  redis.call('HSET', KEYS[4], ARGV[1], cjson.encode(taken))
end
return taken
