-- Finish entries of `events`: acknowledge them, and publish each score that was not published before.
-- KEYS: events, scores, then the call record of each score.
-- ARGV: the Redis server that gave the entries, group, milliseconds to keep a record, then three values for each
--   entry: entry id, score or '', the index of its record in KEYS or 0 (negative: another copy of the answer may have a
--   record, this score has none).
-- Returns the number of acknowledged entries.

redis.replicate_commands()
--@include here
--@include refuse_others
local done = 0
for i = 4, #ARGV, 3 do
  local record = tonumber(ARGV[i + 2])
  if redis.call('XACK', KEYS[1], ARGV[2], ARGV[i]) == 1 then
    done = done + 1
    local published = record ~= 0 and redis.call('HGET', KEYS[math.abs(record)], 'published')
    if ARGV[i + 1] ~= '' and not published then
      redis.call('XADD', KEYS[2], '*', FIELD, ARGV[i + 1])
      if record > 0 then
        redis.call('HSET', KEYS[record], 'published', '1')
        redis.call('PEXPIRE', KEYS[record], ARGV[3])
      end
    end
  end
end
return done
