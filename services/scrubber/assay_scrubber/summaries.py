"""Mask and shorten the values in summaries of tool calls. Pure: never raises, changes no key.

Four rules apply to every value, at any depth. The first one that matches replaces the whole value:

1. A text of more than 2 KiB (UTF-8) becomes `<truncated:N bytes>`. No part of it is kept: a cut text may end in half a secret, which no
   detector recognises.
2. A text that contains a connection URL becomes `<redacted-connection-url>`.
3. A value below a key `filters` becomes `<value>`, because filters name people. Null stays null.
4. A text that contains an e-mail address becomes `<email>`.
"""

import re
from typing import Any

#: The fields of a tool call that the rules apply to.
SUMMARIES = ("args_summary", "result_summary")
#: Longest text that is kept, in bytes of UTF-8.
TEXT_MAX_BYTES = 2048
#: Masks every value below it, at any depth. Case-sensitive.
FILTERS = "filters"
#: Deepest level that is read; deeper values are masked. No event may be nested as deep as this.
LEVELS_MAX = 250

CONNECTION_URL, VALUE, EMAIL = "<redacted-connection-url>", "<value>", "<email>"

# The URL of a database or broker, also without a password: it names a host. Any other URL only with a password, in its authority or in a
# parameter.
_CONNECTION_URL = re.compile(
    r"(?:postgres(?:ql)?|mysql|mariadb|mssql|sqlserver|oracle|sqlite|mongodb|rediss?|valkeys?|amqps?|clickhouse|snowflake)"
    r"(?:\+\w{1,32})?://\S"
    r"|[a-z][a-z0-9+.\-]{0,63}://(?:[^\s\"'<>@/?#]{0,512}:[^\s\"'<>@/]{1,512}@"
    r"|[^\s\"'<>?]{0,1024}\?(?:[^\s\"'<>]{0,1024}[&;])?(?:password|passwd|pwd|pass|secret|access_token|api_?key)=[^\s&;\"'<>])",
    re.IGNORECASE,
)
# A text that is only `x@y.z`, or one that contains an address. The latter is stricter: `react@18.2.0` is a version.
_ONLY_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
_EMAIL = re.compile(r"[\w.%+\-']@(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2}")


def summarise(value: Any) -> Any:
    """Return a JSON value with the four rules applied.

    The input is unchanged. Lists stay lists, tuples tuples.
    """
    return _summarised(value, filtered=False, level=0)


def _summarised(value: Any, *, filtered: bool, level: int) -> Any:
    if isinstance(value, str):
        return _text(value, filtered=filtered)
    if isinstance(value, dict | list | tuple):
        if level >= LEVELS_MAX:
            return VALUE
        if isinstance(value, dict):
            return {
                key: _summarised(item, filtered=filtered or key == FILTERS, level=level + 1)
                for key, item in value.items()
            }
        items = [_summarised(item, filtered=filtered, level=level + 1) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return VALUE if filtered and value is not None else value


def _text(text: str, *, filtered: bool) -> str:
    if len(text) * 4 > TEXT_MAX_BYTES and (size := len(text.encode("utf-8", "surrogatepass"))) > TEXT_MAX_BYTES:
        return f"<truncated:{size} bytes>"
    if "://" in text and _CONNECTION_URL.search(text):
        return CONNECTION_URL
    if filtered:
        return VALUE
    if "@" in text and (_ONLY_EMAIL.fullmatch(text) or _EMAIL.search(text)):
        return EMAIL
    return text
