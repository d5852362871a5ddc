-- Publish an alert's transition once.
-- KEYS: episode, alerts.
-- ARGV: 'open' or 'close', JSON of the alert, start of the episode, milliseconds to remember it.
-- Returns 1, or 0 if the episode is already open or closed.

redis.replicate_commands()
local begun = redis.call('GET', KEYS[1])
if ARGV[1] == 'open' then
  if begun then return 0 end
  redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
else
  if begun ~= ARGV[3] then return 0 end
  redis.call('DEL', KEYS[1])
end
redis.call('XADD', KEYS[2], '*', FIELD, ARGV[2])
return 1
