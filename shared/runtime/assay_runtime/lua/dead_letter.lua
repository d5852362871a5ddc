-- Dead-letter an entry: move it from a stream to `dead` and record the failure, unless another consumer finished it. If
-- other groups read the stream too, it is copied: they may not have read it yet.
-- KEYS: stream, dead, failures.
-- ARGV: the Redis that gave the entry, group, entry id, stage, reason, error class, deliveries, JSON of the failure,
--   and the maximum bytes of `dead`.
-- Returns 1 or 0; -1 if `dead` is full, and the entry stays unfinished.

redis.replicate_commands()
--@include here
--@include refuse_others
local entry = redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3])[1]
local taken = redis.pcall('MEMORY', 'USAGE', KEYS[2], 'SAMPLES', 0) -- a user of an older version has no right to it
if type(taken) == 'number' and taken > tonumber(ARGV[9]) then return -1 end
if redis.call('XACK', KEYS[1], ARGV[2], ARGV[3]) == 0 or not entry then return 0 end
local fields = entry[2]
for _, value in ipairs({'stream', KEYS[1], 'entry_id', ARGV[3], 'stage', ARGV[4], 'reason', ARGV[5], 'error_class', ARGV[6],
                        'deliveries', ARGV[7]}) do
  fields[#fields + 1] = value
end
redis.call('XADD', KEYS[2], '*', unpack(fields))
redis.call('XADD', KEYS[3], '*', FIELD, ARGV[8])
-- Services that only read the stream may not delete; then the one that empties it does.
if #redis.call('XINFO', 'GROUPS', KEYS[1]) == 1 then redis.pcall('XDEL', KEYS[1], ARGV[3]) end
return 1
