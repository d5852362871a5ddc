-- Renew the leases of the judge that reserved.
-- KEYS: call records.
-- ARGV: owner, lease ms.

redis.replicate_commands()
--@include now
for _, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'owner') == ARGV[1] then
    redis.call('HSET', key, 'lease', string.format('%.0f', now + tonumber(ARGV[2])))
  end
end
