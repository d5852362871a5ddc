"""The atomic steps. The keys of each share a hash tag, for Redis Cluster. See the files in `lua`."""

from assay_runtime.lua import script

_PACKAGE = "assay_runtime"
#: Finish entries of `capture`: forward each to `events` or `failures`.
FORWARD = script(_PACKAGE, "forward")
#: Acknowledge entries of a stream that several groups read.
SETTLE = script(_PACKAGE, "settle")
#: Dead-letter an entry.
DEAD_LETTER = script(_PACKAGE, "dead_letter")
#: Move alerts from the inbox to their stream.
ADMIT = script(_PACKAGE, "admit")
#: Return dead letters to their streams.
REQUEUE = script(_PACKAGE, "requeue")
#: Advance the closed watermark of a shard.
WATERMARK = script(_PACKAGE, "watermark")
#: Trim a stream up to what all its groups have finished.
TRIM = script(_PACKAGE, "trim")
#: Count entries and their bytes.
STRIDE = script(_PACKAGE, "stride")
#: Correct the number of entries that a group has read.
COUNTED = script(_PACKAGE, "counted")
#: Advance the low watermark of a quiet shard with the clock.
QUIET = script(_PACKAGE, "quiet")
#: Remove group members without pending entries.
FORGET = script(_PACKAGE, "forget")
