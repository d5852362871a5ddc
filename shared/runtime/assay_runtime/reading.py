"""Read entries with replies of bounded size, however large an entry is.

A count alone is not a bound: after many small entries it would be large, and then each entry may have 1 MiB. A script
therefore reads a few entries at a time until it has enough bytes. One read is smaller than `READ_BYTES` plus
`READ_STEP` entries.
"""

from assay_runtime.connection import Client
from assay_runtime.entries import Entry
from assay_runtime.lua import script
from assay_runtime.same_redis import beside_here
from assay_schema.streams import FIELD

#: Bytes of data that end a read, and the maximum number of entries in one.
READ_BYTES = 1024 * 1024
READ_MOST = 512
#: Entries that are requested without a check of their size: 4 MiB for entries of the maximum size of 1 MiB.
READ_STEP = 4

#: New entries for a member of a group.
READ = script("assay_runtime", "read")


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
