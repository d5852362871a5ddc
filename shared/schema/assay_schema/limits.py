"""Limits of the contract, with their units.

Data over a limit is refused with a failure row; nothing is ever truncated.
"""

SCHEMA_VERSION = 1

#: Longest query, in characters (code points), as the export format defines it.
QUERY_MAX_CHARS = 51_200
#: Longest answer, context text, claim or feedback text, in UTF-8 bytes.
TEXT_MAX_BYTES = 256 * 1024
#: Largest stream entry, in bytes of JSON.
ENTRY_MAX_BYTES = 1024 * 1024
#: Longest identifier (slug, source id, context id, model name), in characters.
NAME_MAX_CHARS = 1_024
#: Longest service name, in characters.
SERVICE_MAX_CHARS = 255
#: Maximum number of hits, contexts, citations or parameters of one event.
ITEMS_MAX = 10_000
#: Deepest nesting of free-form JSON (`params`, tool arguments), in levels.
NESTING_MAX = 64
#: How far the time in an `event_id` may be ahead of the log's clock, in milliseconds (one day).
EVENT_AHEAD_MAX_MS = 24 * 60 * 60 * 1000
#: Largest integer that every JSON parser reads exactly.
SAFE_INTEGER_MAX = 2**53 - 1
#: Range of integers in free-form JSON: 64 bits, signed or unsigned, because serializers write no others.
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
#: Times are strictly between these years, the range of the store's DateTime64 (other times would wrap around).
YEAR_MIN, YEAR_MAX = 1900, 2299
#: A valid name of a project, unanchored, and the same in words.
PROJECT_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
PROJECT_RULE = "letters, digits, '.', '_' or '-', beginning with a letter or digit, at most 64 characters"
