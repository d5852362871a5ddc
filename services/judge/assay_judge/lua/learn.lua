-- Store a call's information about limits.
-- KEYS: tokens of calls.
-- ARGV: call id, tokens it used or '', milliseconds to pause, limit or ''.

redis.replicate_commands()
--@include now
local before = redis.call('HGET', KEYS[1], ARGV[1])
if before and ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'total', string.format('%.0f', tonumber(ARGV[2]) - tonumber(before)))
end
if tonumber(ARGV[3]) > 0 then redis.call('HSET', KEYS[1], 'paused_until', string.format('%.0f', now + tonumber(ARGV[3]))) end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'limit_requests', ARGV[4]) end
redis.call('PEXPIRE', KEYS[1], 120000)
