"""Load atomic steps: one Lua file each, in the folder `lua` of its package.

A file's head describes its keys, its arguments and its reply. `--@include NAME` inserts another file of the folder, or
of this one. Constants of the contract are written by name (`FIELD`); they become locals before the script.

`redis.replicate_commands()` makes Redis 6.2 write effects instead of scripts to its log; later versions always do.
"""

import re
from functools import cache
from importlib.resources import files

from assay_schema.ids import AHEAD_MAX_MS, EPOCH_MS, LAST_MS, PLACES
from assay_schema.streams import FIELD, FIELD_LOW

#: How far above all known ids a Redis starts that has not issued ids before, because its predecessor may have issued
#: more. In milliseconds of the clock: more than a log loses at its end, and longer than a replaced master continues
#: (`min-replicas-max-lag`).
UNKNOWN_MS = 60_000
#: The same margin for the counter, in events of a shard.
UNKNOWN_EVENTS = 1_000_000
#: A step of `stride` ends beyond this many bytes.
STRIDE_BYTES = 4 * 1024 * 1024
#: Reply of `forward` instead of a count: the store's ids are not known yet.
NUMBERS_UNKNOWN = -1
#: Prefix of the refusal of another Redis's entries.
OTHER_REDIS = "OTHERREDIS"

CONSTANTS: dict[str, str | int] = {
    "AHEAD_MAX_MS": AHEAD_MAX_MS,
    "EPOCH_MS": EPOCH_MS,
    "FIELD": FIELD,
    "FIELD_LOW": FIELD_LOW,
    "LAST_MS": LAST_MS,
    "NUMBERS_UNKNOWN": NUMBERS_UNKNOWN,
    "OTHER_REDIS": OTHER_REDIS,
    "PLACES": PLACES,
    "STRIDE_BYTES": STRIDE_BYTES,
    "UNKNOWN_EVENTS": UNKNOWN_EVENTS,
    "UNKNOWN_MS": UNKNOWN_MS,
}
_COMMENT = re.compile(r"^\s*--(?!@).*\n", re.MULTILINE)
_INCLUDE = re.compile(r"^--@include (\w+)\n", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z_]+\b")


def script(package: str, name: str) -> str:
    """Return a script of a package, ready for Redis."""
    text = fragment(package, name)
    used = sorted(CONSTANTS.keys() & set(_NAME.findall(text)))
    return "".join(f"local {constant} = {_literal(CONSTANTS[constant])}\n" for constant in used) + text


@cache
def fragment(package: str, name: str) -> str:
    """Return the text of a file with its includes, without lines of comments."""
    file = files(package).joinpath("lua", f"{name}.lua")
    if not file.is_file() and package != "assay_runtime":
        return fragment("assay_runtime", name)
    text = _COMMENT.sub("", file.read_text(encoding="utf-8")).lstrip("\n")
    return _INCLUDE.sub(lambda include: fragment(package, include[1]), text)


def _literal(value: str | int) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
