"""Format numbers, times and captured texts for a page. Pure."""

import math
import re
import unicodedata
from datetime import UTC, datetime

from markupsafe import Markup, escape

#: Shown for what does not exist or is not known.
NONE = "–"
_MINUS = "−"
#: Characters that change how a text is laid out, or that cannot be seen: shown by their code point.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def number(value: float | None, digits: int | None = None) -> str:
    """Format a number with thousands separators; fractions have up to three digits."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NONE
    if digits is None:
        digits = 0 if float(value).is_integer() or abs(value) >= 100 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}".replace("-", _MINUS)


def counted(count: int, one: str, many: str = "") -> str:
    """Format a number of things with their noun. `many` is its plural if that is not formed with an s."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


def signed(value: float | None, digits: int = 3) -> str:
    """Format a difference: its sign is always there."""
    shown = number(value, digits)
    return f"+{shown}" if value is not None and value > 0 else shown


def probability(value: float | None) -> str:
    """Format a p-value; one too small to print is not printed as 0."""
    return NONE if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def share(value: float | None, digits: int = 1) -> str:
    """Format a share as a percentage."""
    return NONE if value is None else f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Format a 95 % interval."""
    return NONE if low is None or high is None else f"{number(low, digits)} to {number(high, digits)}"


def measured(value: float | None, unit: str) -> str:
    """Format the value of an alert with its unit: shares as percentages, scores as means."""
    if value is None:
        return NONE
    if unit == "share":
        return share(value)
    if unit == "score":
        return number(value, 3)
    if unit == "USD":
        return f"${number(value, 2)}"
    name = "×\N{NO-BREAK SPACE}usual deviation" if unit == "deviations" else unit
    return f"{number(value)}\N{NO-BREAK SPACE}{name}".rstrip()


def measured_interval(low: float | None, high: float | None, unit: str) -> str:
    """Format the 95 % interval of an alert's value with its unit."""
    if low is None or high is None:
        return NONE
    if unit == "share":
        return f"{share(low)} to {share(high)}"
    if unit == "score":
        return interval(low, high)
    return f"{number(low)} to {measured(high, unit)}"


def evidence(value: float | None) -> str:
    """Format evidence as a fraction of what raises an alert. Above ten only that matters."""
    return "over 10" if value is not None and value > 10 else number(value, 2)


def milliseconds(value: float | None) -> str:
    """Format a duration given in milliseconds, in the unit that people read."""
    if value is None:
        return NONE
    if value < 1000:
        return f"{number(value, 0 if value >= 10 else 1)}\N{NO-BREAK SPACE}ms"
    return duration(value / 1000)


def duration(seconds: float | None) -> str:
    """Format a duration given in seconds: the two largest units."""
    if seconds is None:
        return NONE
    if seconds < 0:
        return _MINUS + duration(-seconds)
    if seconds < 60:
        return f"{seconds:.1f}\N{NO-BREAK SPACE}s" if seconds < 10 else f"{seconds:.0f}\N{NO-BREAK SPACE}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}\N{NO-BREAK SPACE}min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}\N{NO-BREAK SPACE}h {minutes:02}\N{NO-BREAK SPACE}min"
    days, hours = divmod(hours, 24)
    return f"{days}\N{NO-BREAK SPACE}d {hours}\N{NO-BREAK SPACE}h"


def moment(value: datetime | float | str | None, precision: str = "seconds") -> Markup:
    """Return a `<time>` element: UTC, with the full time for machines. Numbers are Unix ms."""
    if value is None or value == "":
        return escape(NONE)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, int | float):
        value = datetime.fromtimestamp(value / 1000, UTC)
    at = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    text = {"date": f"{at:%Y-%m-%d}", "minutes": f"{at:%m-%d %H:%M}", "seconds": f"{at:%m-%d %H:%M:%S}"}.get(precision)
    shown = text or f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}"
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        at.isoformat().replace("+00:00", "Z"), f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}", shown
    )


def visible(text: str | None) -> str:
    """Return captured text for an attribute or a drawing, where it cannot be marked up.

    Characters that cannot be seen, or that change the direction of text, are replaced by their code point.
    """
    return _INVISIBLE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text or "")


def coded(text: str) -> Markup:
    """Return a sentence of Assay with the commands and settings that are between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    shown = (Markup("<code>{}</code>").format(part) if odd % 2 else escape(part) for odd, part in enumerate(parts))
    return Markup("").join(shown)


def sentence(text: str) -> str:
    """Return a message as a sentence.

    With a capital and a full stop; a command at its beginning keeps its letter.
    """
    text = text.strip()
    return text if not text else text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def drawn(value: float | None) -> str:
    """Format the probability with which something was drawn; 1 is certain, and has no digits."""
    return "1" if value == 1 else number(value, 4)


def captured(text: str | None, longest: int | None = None, *, keep: bool = True) -> Markup:
    """Return captured text as text, isolated from what surrounds it.

    Characters that cannot be seen, or that change the direction of text, appear by their code point. A text that is cut
    says how long it is. `keep`: the characters themselves stay in the text for who copies it.
    """
    if text is None:
        return escape(NONE)
    shown = text if longest is None or len(text) <= longest else text[:longest]
    parts: list[str | Markup] = []
    end = 0
    for match in _INVISIBLE.finditer(shown):
        parts.append(escape(shown[end : match.start()]))
        code = match[0]
        name = unicodedata.name(code, "control character")
        # Only the label is visible. HTML has no NUL.
        # A parser of HTML makes a line feed of a carriage return, unless it is written by its number.
        kept = "" if code == "\0" or not keep else Markup("&#13;") if code == "\r" else code
        parts.append(
            Markup('<span class="invisible" title="{}" data-char="{:04X}">{}</span>').format(name, ord(code), kept)
        )
        end = match.end()
    parts.append(escape(shown[end:]))
    cut = Markup("")
    if len(shown) < len(text):
        cut = Markup('<span class="cut" title="{} of {} characters">…</span>').format(
            number(longest), number(len(text))
        )
    return Markup('<bdi class="captured">{}</bdi>{}').format(Markup("").join(parts), cut)


def short_id(identity: object) -> str:
    """Return the end of an id, which differs where its beginning is a time."""
    return f"…{str(identity)[-8:]}"
