-- Move alerts from the inbox to their stream. The copy is made first: if Redis has no memory for it, the alert stays. A
-- document that is not JSON with its own episode and transition (UUIDs of version 8; services make version 5) is
-- discarded: a submitted alert must not end or hide one of a service.
-- KEYS: inbox, alerts.
-- ARGV: maximum number of alerts.
-- Returns the numbers of moved and discarded alerts.

redis.replicate_commands()
local x = '%x%x%x%x'
local own = '^' .. x .. x .. '%-' .. x .. '%-8%x%x%x%-' .. x .. '%-' .. x .. x .. x .. '$'
local function is_own(id) return type(id) == 'string' and string.find(id, own) ~= nil end
local moved, refused = 0, 0
for _ = 1, tonumber(ARGV[1]) do
  local text = redis.call('LINDEX', KEYS[1], 0)
  if not text then break end
  local read, alert = pcall(cjson.decode, text)
  if read and type(alert) == 'table' and is_own(alert.alert_id) and is_own(alert.transition_id) then
    redis.call('XADD', KEYS[2], '*', FIELD, text)
    moved = moved + 1
  else
    refused = refused + 1
  end
  redis.call('LPOP', KEYS[1])
end
return {moved, refused}
