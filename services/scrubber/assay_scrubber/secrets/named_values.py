"""Match a name and its value in separate fields: `{"name": "token", "value": "…"}`, `Name=…;Value=…`.

In either order: `<add value="…" key="DbPassword"/>`.
"""

import re

from assay_scrubber.family import LiteralRule, View
from assay_scrubber.json_scrub import hint_of

from .assigned import NAMES, SUFFIX, VALUE, is_meant
from .extent import ending
from .members import keyed

# The value and, before it, the word that names it, in any context: `<property name="password" value="…"/>`.
_HELD = re.compile(rb"(?:value|val|default|content|data|[\"' ]v)\\{0,6}[\"']?[ \t]{0,4}[:=][ \t]{0,4}" + VALUE)
_NAME_BEFORE = re.compile(
    rb"(?P<name>" + NAMES + rb")" + SUFFIX + rb"\\{0,6}[\"']?[,;]?(?:\s{1,20}|[ \t]?\{\s{0,20}|\s{0,4}\\{0,6}[\"'])"
    rb"(?:[a-z\-]{1,16}=[\"'][^\"'\n]{0,48}[\"']\s{1,4}"
    rb"|\\{0,6}\"?[a-z]{1,12}\\{0,6}\"?[ \t]{0,4}[:=][ \t]{0,4}\\{0,6}\"?[a-z]{1,12}\\{0,6}\"?[,\s]\s{0,16}"
    rb"|\\{0,6}[\"']){0,4}$"
)
# Text before a name, the end of a name, and text between a name and its value.
_NAMING = (
    rb"(?:(?:parameter|env|environment|setting|property|header|cookie|field|option|config|secret|attribute)?[_\- ]?(?:name|key)"
    rb"|(?<![a-z0-9])k|variable|header|field|setting|option|param(?:eter)?|property|attribute|label)"
)
_QUOTE = rb"\\{0,6}[\"']?"
_ASSIGNS = rb"[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}"
_NAME = rb"(?P<name>[\w.\-/:]{1,64}?)"
_OTHER = rb"[\w\-]{1,16}" + _QUOTE + _ASSIGNS + rb"(?:[\"'][^\"'\n]{0,48}[\"']|[\w.\-/]{1,48})[,;&\s|]{1,16}"
_GAP = rb"[,;&\s|]{1,16}@?(?:" + _OTHER + rb"){0,3}"
_BEFORE = re.compile(
    rb"(?<![a-z0-9])"
    + _NAMING
    + _QUOTE
    + _ASSIGNS
    + _QUOTE
    + _NAME
    + _QUOTE
    + _GAP
    + rb"(?:- )?"
    + _QUOTE
    + rb"(?:[a-z]{1,16}[_\- ]?)?$"
)
_AFTER = re.compile(
    _QUOTE + _GAP + _QUOTE + _NAMING + _QUOTE + _ASSIGNS + _QUOTE + _NAME + rb"(?=[\"'\\,;&\s}/>|)\]]|$)"
)
# A part of each word that the patterns above begin with. Most values have none nearby, and a search for a literal is cheap.
_PARTS_OF_NAMES = (b"pass", b"pwd", b"psk", b"secret", b"token", b"key", b"credential", b"sid", b"session", b"x-auth")
_PARTS_OF_NAMING = (
    b"name",
    b"key",
    b'k"',
    b"k'",
    b"k=",
    b"variable",
    b"header",
    b"field",
    b"setting",
    b"option",
    b"param",
    b"property",
    b"attribute",
    b"label",
)
_REACH = 200


# Options of a command: `put-parameter --name /prod/password --value …`.
_OPTION = re.compile(rb"--(?:secret-)?(?:value|string)[ =]{1,2}" + VALUE)
_OPTION_BEFORE = re.compile(
    rb"--(?:secret-)?(?:name|id|key)[ =]{1,2}[\"']?(?P<name>[\w.\-/:]{1,96})[\"']?(?: [^\n|;]{0,96})?$"
)


def _judged(name: bytes, value: bytes) -> bool:
    """Return whether a name, or the last step of a path of names, is a keyword for such a value."""
    judge = keyed(hint_of(name.rpartition(b"/")[2].decode("latin-1")))
    return judge is not None and judge(value)


def _optional(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    quote, named = match["quote"], _OPTION_BEFORE.search(view.raw, max(0, match.start() - _REACH), match.start())
    start, end, value, _ = ending(quote, match.span("quoted" if quote else "bare"), view.raw, whole=True)
    return (start, end) if named is not None and _judged(named["name"], value) else None


def _held(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    quote, at = match["quote"], match.start() + match.group(0).startswith(b" ")
    written = match.span("quoted" if quote else "bare")
    start, end, value, _ = ending(quote, written, view.raw, whole=view.raw[written[1] : written[1] + 1] != b"&")
    exact = not match.group(0).startswith((b"data", b'"', b"'", b" "))
    first = max(0, at - _REACH)
    may_be_named = exact and any(view.low.find(part, first, at) >= 0 for part in _PARTS_OF_NAMES)
    word = _NAME_BEFORE.search(view.low, first, at) if may_be_named else None
    if word is not None and is_meant(view, word.start(), word["name"], value):
        return start, end
    says_so = any(view.low.find(part, first, at) >= 0 for part in _PARTS_OF_NAMING)
    named = (_BEFORE.search(view.low, first, at) if says_so else None) or _AFTER.match(view.low, end, end + _REACH)
    if named is None:
        return None
    return (start, end) if _judged(view.raw[slice(*named.span("name"))], value) else None


RULES = (
    *(
        LiteralRule(_OPTION, _optional, lower=True, anchored=True, needle=word)
        for word in (b"--value", b"--secret-value", b"--secret-string")
    ),
    *(
        LiteralRule(_HELD, _held, lower=True, anchored=True, needle=word, opens=word + ending + rb"\\*[\"']?[ \t]*[:=]")
        for word, ending in ((b"val", b"(?:ue)?"), (b"default", b""), (b"content", b""), (b"data", b""))
    ),
    *(
        LiteralRule(_HELD, _held, lower=True, anchored=True, needle=word, opens=word + rb"[ \t]*[:=]")
        for word in (b'"v"', b"'v'", b" v")
    ),
)
