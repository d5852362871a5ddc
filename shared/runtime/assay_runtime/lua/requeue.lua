-- Requeue dead letters: each leaves `dead` in the same step in which it enters its stream, and only if it is still
-- there, so concurrent requeues send it once. The copy is made first: if Redis has no memory for it, the letter stays.
-- KEYS: dead, capture, failures, alerts, spans.
-- ARGV: three for each letter: its id in `dead`; 'c', 'f', 'a' or 's', the target stream; its data.
-- Returns 1 or 0 for each letter, in order: whether it was moved.

redis.replicate_commands()
local streams, moved = {c = KEYS[2], f = KEYS[3], a = KEYS[4], s = KEYS[5]}, {}
for i = 1, #ARGV, 3 do
  local there = redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])[1]
  if there then
    redis.call('XADD', streams[ARGV[i + 1]], '*', FIELD, ARGV[i + 2])
    redis.call('XDEL', KEYS[1], ARGV[i])
  end
  moved[#moved + 1] = there and 1 or 0
end
return moved
