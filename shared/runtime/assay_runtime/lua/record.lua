-- The commands XINFO return names and values in turn.

local function record(answer)
  local found = {}
  for i = 1, #answer, 2 do found[answer[i]] = answer[i + 1] end
  return found
end
