-- Publish the score of an answer in a batch once.
-- KEYS: sent answers, scores, call record.
-- ARGV: answer, score.
-- Returns 1 or 0.

redis.replicate_commands()
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', FIELD, ARGV[2])
redis.call('HSET', KEYS[3], 'published', '1')
return 1
