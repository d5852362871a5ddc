"""The Redis Streams: names, consumer groups, and who may hold what. Declared here once; services, ACLs and documents follow.

A stream is split in shards by project, so one project's events keep their order. The shard stands in braces in the key, which puts
all streams of one shard in the same Redis Cluster slot: the scripts that move entries between them are atomic there too.
"""

from dataclasses import dataclass
from zlib import crc32

#: First part of every key.
PREFIX = "assay"
#: The one field of an entry that holds its JSON.
FIELD = "data"
#: The field of an `events` entry that carries the watermark of its moment: every later entry has a greater `id`.
FIELD_LOW = "low"


@dataclass(frozen=True)
class Stream:
    """One stream and its consumer groups. An entry is trimmed once every group that exists has finished it.

    The first group is always there. The others belong to services that need not run: a group that was never made holds nothing back,
    and one that stands still does only up to `delivery.held_bytes`.
    """

    name: str
    groups: tuple[str, ...]
    purpose: str

    @property
    def optional(self) -> tuple[str, ...]:
        """The groups of services that need not run."""
        return self.groups[1:]

    def key(self, shard: int = 0) -> str:
        """The Redis key of one shard, such as `assay:{0}:capture`."""
        return f"{PREFIX}:{{{shard}}}:{self.name}"


CAPTURE = Stream(
    "capture", ("scrubber",), "Raw events from producers. Emptied as they are scrubbed; only the scrubber may read it."
)
EVENTS = Stream("events", ("writer", "judge", "drift"), "Scrubbed events. A short history stays for live tail.")
FAILURES = Stream("failures", ("writer", "drift"), "What could not be stored, and why.")
DEAD = Stream("dead", (), "Entries given up after too many deliveries, kept for a while to be requeued.")
SCORES = Stream("scores", ("writer", "drift"), "What the judge thinks of each answer.")
ALERTS = Stream("alerts", ("writer", "notifier"), "Transitions of alert episodes, to be stored and sent to people.")
STREAMS = (CAPTURE, EVENTS, FAILURES, DEAD, SCORES, ALERTS)


def low_key(shard: int = 0) -> str:
    """Key of the scrubber's own watermark for a shard: every capture entry with an `id` up to it has left the `capture` stream."""
    return f"{PREFIX}:{{{shard}}}:low"


def watermark_key(shard: int = 0) -> str:
    """Key of the highest watermark handed out for a shard; it never goes back."""
    return f"{PREFIX}:{{{shard}}}:watermark"


def overflow_key(shard: int = 0) -> str:
    """Key of the last `id` given to an entry whose sequence number did not fit."""
    return f"{PREFIX}:{{{shard}}}:overflow"


def numbered_key(shard: int = 0) -> str:
    """Key of the Redis that gave the last `id` of a shard, by its replication id: one that reads another's name here came up anew."""
    return f"{PREFIX}:{{{shard}}}:numbered"


def drift_key(shard: int = 0) -> str:
    """Key of what the drift service knows: a hash with one field for each series, and `version`, which every change raises."""
    return f"{PREFIX}:{{{shard}}}:drift"


def drift_seen_key(shard: int = 0) -> str:
    """Key of the samples that the drift service has counted lately, a sorted set by their time."""
    return f"{PREFIX}:{{{shard}}}:drift-seen"


def acknowledged_key(shard: int = 0) -> str:
    """Key of the episodes that people acknowledged and the drift service has not closed yet: a hash, from `alert_id` to when."""
    return f"{PREFIX}:{{{shard}}}:acknowledged"


def calibration_key(shard: int = 0) -> str:
    """Key of the judges' calibration: a hash from `project/fingerprint/metric` to JSON: agreement with people's labels, and of how many."""
    return f"{PREFIX}:{{{shard}}}:calibration"


def alert_inbox_key(shard: int = 0) -> str:
    """Key of alerts on their way to the stream `alerts`: a list, to which one can append without being able to remove what others did."""
    return f"{PREFIX}:{{{shard}}}:alert-inbox"


def notices_key(shard: int = 0) -> str:
    """Key of the notices that receivers took: a sorted set of `<transition_id>/<channel>` by the time of delivery (Unix seconds)."""
    return f"{PREFIX}:{{{shard}}}:notices"


def episodes_key(shard: int = 0) -> str:
    """Key of the notifier's episodes: a hash of `alert_id` to its latest alert, and of `alert_id/sequence` to the severity set then."""
    return f"{PREFIX}:{{{shard}}}:episodes"


def shard_of(project: str, shards: int) -> int:
    """The shard of a project: stable across processes, versions and languages (CRC-32 of its UTF-8, modulo the shards)."""
    return crc32(project.encode()) % shards
