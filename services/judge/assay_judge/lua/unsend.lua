-- Return the answers of a batch that was certainly not accepted to the queue, and delete the batch.
-- KEYS: as for SEND.
-- ARGV: name, answers.

redis.replicate_commands()
for i = 2, #ARGV do
  local answer = redis.call('HGET', KEYS[2], ARGV[i])
  if answer then
    redis.call('HSET', KEYS[1], ARGV[i], answer)
    redis.call('HDEL', KEYS[2], ARGV[i])
  end
end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
