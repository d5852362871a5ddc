-- Publish a score of a session, and empty the records of its calls: they have text of the session's rubric.
-- KEYS: scores, record of the session, then the records of its calls.
-- ARGV: score, 1 if it was judged or 0 if it is not in the sample, milliseconds to keep the records.
-- Returns 1, or 0 for a session that is not in the sample, but was judged by name meanwhile: that score stays.

redis.replicate_commands()
if ARGV[2] == '0' and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('XADD', KEYS[1], '*', FIELD, ARGV[1])
if ARGV[2] == '1' then
  redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
  for place = 3, #KEYS do
    if redis.call('HGET', KEYS[place], 'state') == 'done' then redis.call('HSET', KEYS[place], 'score', '') end
  end
end
return 1
