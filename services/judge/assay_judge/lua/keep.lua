-- Store the score of an answer that cost nothing, unless a judge is working on it.
-- KEYS: call record.
-- ARGV: score, milliseconds to keep it.
-- Returns 1 or 0.

redis.replicate_commands()
if redis.call('HGET', KEYS[1], 'state') then return 0 end
redis.call('HSET', KEYS[1], 'state', 'done', 'score', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
