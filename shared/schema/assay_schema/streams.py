"""The Redis Streams: names, consumer groups and content.

Services, ACLs and documents derive from them.

A stream is split into shards by project, so one project's events keep their order. The shard is in braces in the key,
which puts all streams of one shard in the same Redis Cluster slot: the scripts that move entries between them are
atomic there too.
"""

import hashlib
from dataclasses import dataclass
from datetime import date
from zlib import crc32

#: First part of every key.
PREFIX = "assay"
#: The one field of an entry, with its JSON.
FIELD = "data"
#: Field of an `events` entry with the current watermark: every later entry has a greater `id`.
FIELD_LOW = "low"


@dataclass(frozen=True)
class Stream:
    """A stream and its consumer groups. An entry is trimmed once every existing group has finished it.

    The first group always exists. The others belong to optional services: a group that was never created retains
    nothing, and one whose service has stopped retains at most `delivery.held_bytes`.
    """

    name: str
    groups: tuple[str, ...]
    purpose: str

    @property
    def optional(self) -> tuple[str, ...]:
        """Groups of optional services."""
        return self.groups[1:]

    def key(self, shard: int = 0) -> str:
        """Return the Redis key of one shard, such as `assay:{0}:capture`."""
        return f"{PREFIX}:{{{shard}}}:{self.name}"


CAPTURE = Stream(
    "capture", ("scrubber",), "Raw events from producers. Emptied as they are scrubbed; only the scrubber may read it."
)
SPANS = Stream(
    "spans", ("assembler",), "Spans of OpenTelemetry with AI content, raw. Emptied as they are assembled into events."
)
EVENTS = Stream(
    "events", ("writer", "judge", "drift", "otlp_exporter"), "Scrubbed events. A short history stays for live tail."
)
FAILURES = Stream("failures", ("writer", "drift"), "Events that could not be stored, and the reasons.")
DEAD = Stream("dead", (), "Dead letters: entries given up after too many deliveries, kept for a while to be requeued.")
SCORES = Stream("scores", ("writer", "drift", "otlp_exporter"), "The judge's scores of each answer.")
ALERTS = Stream("alerts", ("writer", "notifier"), "Transitions of alert episodes, to be stored and sent to people.")
STREAMS = (CAPTURE, SPANS, EVENTS, FAILURES, DEAD, SCORES, ALERTS)


def open_traces_key(shard: int = 0) -> str:
    """Return the key of the traces that wait for more spans.

    It is a sorted set of their keys, by the time when they close, in Unix milliseconds of Redis's clock.
    """
    return f"{PREFIX}:{{{shard}}}:open-traces"


def trace_key(shard: int, project: str, trace_id: str) -> str:
    """Return the key of one open trace: a hash with its spans, and the ids of its events that were sent."""
    return f"{PREFIX}:{{{shard}}}:trace:{project}/{trace_id}"


def open_bytes_key(shard: int = 0) -> str:
    """Return the key of the number of bytes of all open traces."""
    return f"{PREFIX}:{{{shard}}}:open-bytes"


def answer_of_trace_key(shard: int, project: str, trace_id: str) -> str:
    """Return the key of the `event_id` of a trace's answer. It is kept for later feedback."""
    return f"{PREFIX}:{{{shard}}}:answer:trace:{project}/{trace_id}"


def answer_of_response_key(shard: int, project: str, response_id: str) -> str:
    """Return the key of the `event_id` of the answer with a model's response.

    It is kept for later feedback. Model APIs choose these ids, so that the name of the key has a hash of it.
    """
    digest = hashlib.sha256(response_id.encode("utf-8", "replace")).hexdigest()[:32]
    return f"{PREFIX}:{{{shard}}}:answer:response:{project}/{digest}"


def unassembled_key(shard: int, day: date) -> str:
    """Return the key of the spans that made no event on a day (UTC).

    It is a hash of `project/reason` to their number.
    """
    return f"{PREFIX}:{{{shard}}}:unassembled:{day:%Y%m%d}"


def scrubbed_low_watermark_key(shard: int = 0) -> str:
    """Return the key of the scrubber's watermark.

    Capture entries with an `id` up to it have been scrubbed.
    """
    return f"{PREFIX}:{{{shard}}}:low"


def watermark_key(shard: int = 0) -> str:
    """Return the key of the highest watermark issued for a shard; it never decreases."""
    return f"{PREFIX}:{{{shard}}}:watermark"


def overflow_key(shard: int = 0) -> str:
    """Return the key of the last `id` given to an entry whose sequence number did not fit."""
    return f"{PREFIX}:{{{shard}}}:overflow"


def numbered_key(shard: int = 0) -> str:
    """Return the key of the Redis that issued a shard's last `id`, by replication id.

    A Redis that reads another's id here was restarted or replaced.
    """
    return f"{PREFIX}:{{{shard}}}:numbered"


def drift_key(shard: int = 0) -> str:
    """Return the key of the drift state: a hash with one field per series, and `version`.

    Every change increments the version.
    """
    return f"{PREFIX}:{{{shard}}}:drift"


def drift_seen_key(shard: int = 0) -> str:
    """Return the key of samples recently counted by the drift service, a sorted set by time."""
    return f"{PREFIX}:{{{shard}}}:drift-seen"


def acknowledged_key(shard: int = 0) -> str:
    """Return the key of acknowledged episodes not yet closed by drift: a hash of `alert_id` to time."""
    return f"{PREFIX}:{{{shard}}}:acknowledged"


def calibration_key(shard: int = 0) -> str:
    """Return the key of the judges' calibrations: a hash of `project/fingerprint/metric` to JSON.

    The JSON contains the agreement with people's labels, and their number.
    """
    return f"{PREFIX}:{{{shard}}}:calibration"


def alert_inbox_key(shard: int = 0) -> str:
    """Return the key of the alert inbox: a list, so that users can append but not remove alerts."""
    return f"{PREFIX}:{{{shard}}}:alert-inbox"


def notices_key(shard: int = 0) -> str:
    """Return the key of accepted notices: a sorted set of `<transition_id>/<channel>` by Unix seconds."""
    return f"{PREFIX}:{{{shard}}}:notices"


def episodes_key(shard: int = 0) -> str:
    """Return the key of the notifier's episodes: a hash.

    `alert_id` maps to its latest alert, and `alert_id/sequence` to the severity set then.
    """
    return f"{PREFIX}:{{{shard}}}:episodes"


def api_keys_key() -> str:
    """Return the key of the API keys of HTTP clients: a hash of key id to record (JSON), and `version`.

    Every change sets a new version. Records contain a hash of the key, never the key.
    """
    return f"{PREFIX}:{{0}}:api-keys"


#: Field of the API keys that changes with every change of a record. No id of a key has this length.
API_KEYS_VERSION = "version"


def shard_of(project: str, shards: int) -> int:
    """Return the shard of a project: CRC-32 of its UTF-8, modulo the shards.

    It is stable across processes, versions and languages.
    """
    return crc32(project.encode()) % shards
