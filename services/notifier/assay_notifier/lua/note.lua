-- Store the alert unless a later transition of its episode is stored, and its severity, if any.
-- KEYS: episodes.
-- ARGV: alert id, sequence, JSON, severity or ''.
-- Returns 1 or 0.

redis.replicate_commands()
local kept = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], ARGV[1] .. '/' .. ARGV[2], ARGV[4]) end
if kept and cjson.decode(kept).sequence >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
