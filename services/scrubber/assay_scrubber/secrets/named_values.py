"""A name and its value apart: `{"name": "token", "value": "…"}`, `<add value="…" key="DbPassword"/>`, `Name=…;Value=…`."""

import re

from assay_scrubber.family import Rule, View
from assay_scrubber.walk import hint_of

from .assigned import NAMES, SUFFIX, VALUE, is_meant
from .extent import ending
from .members import keyed

# The value, and before it the word that names it, whatever stands there: `<property name="password" value="…"/>`.
_HELD = re.compile(rb"(?:value|val|default|content)\\{0,6}[\"']?[ \t]{0,4}[:=][ \t]{0,4}" + VALUE)
_NAME_BEFORE = re.compile(
    rb"(?P<name>" + NAMES + rb")" + SUFFIX + rb"\\{0,6}[\"']?[,;]?(?:\s{1,20}|[ \t]?\{\s{0,20}|\s{0,4}\\{0,6}[\"'])"
    rb"(?:[a-z\-]{1,16}=[\"'][^\"'\n]{0,48}[\"']\s{1,4}"
    rb"|\\{0,6}\"?[a-z]{1,12}\\{0,6}\"?[ \t]{0,4}[:=][ \t]{0,4}\\{0,6}\"?[a-z]{1,12}\\{0,6}\"?[,\s]\s{0,16}"
    rb"|\\{0,6}[\"']){0,4}$"
)
# What says that a name follows; how the name ends, and what may stand between it and its value.
_NAMING = (
    rb"(?:(?:parameter|env|environment|setting|property|header|cookie|field|option|config|secret|attribute)?[_\- ]?(?:name|key)"
    rb"|variable|header|field|setting|option|param(?:eter)?|property|attribute|label)"
)
_QUOTE = rb"\\{0,6}[\"']?"
_ASSIGNS = rb"[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}"
_NAME = rb"(?P<name>[\w.\-/:]{1,64}?)"
_OTHER = rb"[\w\-]{1,16}" + _QUOTE + _ASSIGNS + rb"(?:[\"'][^\"'\n]{0,48}[\"']|[\w.\-/]{1,48})[,;&\s|]{1,16}"
_GAP = rb"[,;&\s|]{1,16}(?:" + _OTHER + rb"){0,3}"
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
_REACH = 200


def _held(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    quote, at = match["quote"], match.start()
    start, end, value, _ = ending(quote, match.span("quoted" if quote else "bare"), view.raw, whole=True)
    word = _NAME_BEFORE.search(view.low, max(0, at - _REACH), at)
    if word is not None and is_meant(view, word.start(), word["name"], value):
        return start, end
    named = _BEFORE.search(view.low, max(0, at - _REACH), at) or _AFTER.match(view.low, end, end + _REACH)
    if named is None:
        return None
    name = view.raw[slice(*named.span("name"))].rpartition(b"/")[2]
    judge = keyed(hint_of(name.decode("latin-1")))
    return (start, end) if judge is not None and judge(value) else None


RULES = tuple(
    Rule(_HELD, _held, lower=True, anchored=True, needle=word, opens=word + rb"\\*[\"']?[ \t]*[:=]")
    for word in (b"value", b"val", b"default", b"content")
)
