"""Read entries with replies of bounded size, however large an entry is.

A count alone is not a bound: after many small entries it would be large, and then each entry may have 1 MiB. A script
therefore reads a few entries at a time until it has enough bytes. One read is smaller than `READ_BYTES` plus
`READ_STEP` entries.
"""

from assay_runtime.connection import Client
from assay_runtime.entries import Entry
from assay_runtime.same_redis import HERE, beside_here
from assay_schema.streams import FIELD

#: Bytes of data that end a read, and the maximum number of entries in one.
READ_BYTES = 1024 * 1024
READ_MOST = 512
#: Entries that are requested without a check of their size: 4 MiB for entries of the maximum size of 1 MiB.
READ_STEP = 4

#: New entries for a member of a group. KEYS: stream. ARGV: group, consumer, field, maximum entries, entries of a step,
#: bytes that are enough for a read. Returns id and data of each, in turn, then 1 if there may be more, else 0, and the
#: id of this Redis server.
READ = f"""
{HERE}local field, most, step, enough = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local read, n, bytes, more = {{}}, 0, 0, 1
while more == 1 and n < 2 * most and bytes < enough do
  local answer = redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', step, 'STREAMS', KEYS[1], '>')
  if answer and answer.err then
    if n == 0 then return answer end
    answer = false -- what was read before it is ours all the same
  end
  local entries = answer and answer[1][2] or {{}}
  for _, entry in ipairs(entries) do
    local fields, data = entry[2], ''
    for i = 1, #fields, 2 do
      if fields[i] == field then data = fields[i + 1] end
    end
    read[n + 1], read[n + 2] = entry[1], data
    n, bytes = n + 2, bytes + #data
  end
  if #entries < step then more = 0 end
end
read[n + 1], read[n + 2] = more, here
return read
"""


class Reader:
    """Reads the new entries of one stream for one member of a group."""

    def __init__(self, client: Client, key: str, group: str, name: str) -> None:
        self._client = client
        self._key = key
        self._group = group
        self._name = name
        self._script = client.register_script(READ)
        #: True if the last read left entries behind.
        self._more = False

    async def read(self, block_ms: int) -> list[Entry]:
        """Return the next entries; waits up to `block_ms` milliseconds for the first. Empty if none arrive."""
        if self._more:
            self._more = False
            arguments = [self._group, self._name, FIELD, READ_MOST, READ_STEP, READ_BYTES]
            *found, more, here = await self._script(keys=[self._key], args=arguments)
            self._more = bool(more)
            if found:
                redis = here.decode()
                return [Entry(entry.decode(), data, redis) for entry, data in zip(found[::2], found[1::2], strict=True)]
        member = self._group, self._name, {self._key: ">"}
        answer, redis = await beside_here(
            self._client, self._key, "xreadgroup", *member, count=READ_STEP, block=block_ms
        )
        entries = answer[0][1] if answer else []
        self._more = len(entries) == READ_STEP
        return [Entry(entry.decode(), fields.get(FIELD.encode(), b""), redis) for entry, fields in entries]
