-- Check whether one more call may start within the limits of calls and tokens per minute.
-- KEYS: calls by time, their tokens.
-- ARGV: call id, tokens, maximum calls, maximum tokens.
-- Returns 0, or the milliseconds until the next check.

redis.replicate_commands()
--@include now
local paused = tonumber(redis.call('HGET', KEYS[2], 'paused_until') or '0')
if paused > now then return paused - now end
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - 60000)
local total = tonumber(redis.call('HGET', KEYS[2], 'total') or '0')
for _, id in ipairs(old) do
  total = total - tonumber(redis.call('HGET', KEYS[2], id) or '0')
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[1], id)
end
redis.call('HSET', KEYS[2], 'total', string.format('%.0f', total))
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local most = math.min(tonumber(ARGV[3]), tonumber(redis.call('HGET', KEYS[2], 'limit_requests') or ARGV[3]))
local calls, tokens = redis.call('ZCARD', KEYS[1]), tonumber(ARGV[2])
if calls > 0 and (calls >= most or total + tokens > tonumber(ARGV[4])) then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return math.max(20, math.min(1000, tonumber(oldest[2]) + 60001 - now))
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], 'total', string.format('%.0f', total + tokens))
redis.call('PEXPIRE', KEYS[1], 120000)
redis.call('PEXPIRE', KEYS[2], 120000)
return 0
