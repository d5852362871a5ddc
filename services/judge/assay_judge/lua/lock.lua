-- Extend or release a lock, if it is still ours.
-- KEYS: lock.
-- ARGV: owner, milliseconds to keep it, or 0.
-- Returns 1 or 0.

redis.replicate_commands()
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
