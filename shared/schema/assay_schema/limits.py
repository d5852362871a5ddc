"""Every limit of the contract, with its unit. What is over a limit is refused with a failure row; nothing is ever cut short."""

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
#: Most hits, contexts, citations or parameters one event may carry.
ITEMS_MAX = 10_000
#: Deepest nesting of free-form JSON (`params`, tool arguments), in levels.
NESTING_MAX = 64
#: How far ahead of the log's clock an `event_id` may claim to be, in milliseconds (one day).
EVENT_AHEAD_MAX_MS = 24 * 60 * 60 * 1000
#: Largest integer that every JSON parser reads exactly.
SAFE_INTEGER_MAX = 2**53 - 1
#: Integers in free-form JSON: what 64 bits hold, signed or unsigned, since serialisers write no others.
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
#: Times lie strictly between these years, the range of the store's DateTime64 (which would wrap others round).
YEAR_MIN, YEAR_MAX = 1900, 2299
