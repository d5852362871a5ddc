"""Scrub a stream line by line or block by block, in bounded memory.

Pure: lines in, lines out, problems to a callback.

A line of NDJSON is one document. Text is scrubbed in blocks of whole lines, each searched together with the text after it, so that a
private key of many lines is found. Input that cannot be scrubbed is left out and reported, never passed on.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.explain import Explaining
    from assay_scrubber.finding import Finding
    from assay_scrubber.keys import RemovedKeys

#: Longer lines are left out: a line is held in memory as a whole.
LINE_MAX_BYTES = 16 * 1024 * 1024
#: Size in characters of a block, and of the text after it that is searched with it.
BLOCK_CHARS, AHEAD_CHARS = 256 * 1024, 64 * 1024
#: Maximum distance of a keyword from its value. If findings are denser, the best of _MOST_CUTS line ends is used.
ANNOUNCED_WITHIN, _MOST_CUTS = 256, 64

#: Line number (from 1) and the problem; never the line's content.
Complain = Callable[[int, str], None]


NOT_JSON = "not JSON"
_BOM = b"\xef\xbb\xbf"


class LineError(ValueError):
    """A line that cannot be scrubbed. The message contains nothing of it."""


def numbered(lines: Iterable[bytes], complain: Complain) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers, from 1.

    `lines` come in pieces of at most LINE_MAX_BYTES; a line of several pieces is left out.
    """
    number, rest_of_long = 1, False
    for piece in lines:
        ends = piece.endswith(b"\n")
        if rest_of_long or (not ends and len(piece) >= LINE_MAX_BYTES):
            if not rest_of_long:
                complain(number, f"longer than {LINE_MAX_BYTES} bytes; left out")
            rest_of_long = not ends
        else:
            yield number, piece
        number += ends


def is_utf16(line: bytes) -> bool:
    """Return whether a line is text of two or four bytes a character.

    Such a line begins with a byte order mark, or two fifths of it are NUL.
    """
    zeros = line.count(b"\0")
    return line.startswith((b"\xff\xfe", b"\xfe\xff")) or (zeros > 1 and zeros * 5 >= len(line) * 2)


def without_utf16(lines: Iterable[tuple[int, bytes]], complain: Complain) -> Iterator[tuple[int, bytes]]:
    """Yield the UTF-8 lines; other lines can have been appended by another program."""
    for number, line in lines:
        if b"\0" in line and is_utf16(line):
            complain(number, "UTF-16 or UTF-32, not UTF-8; left out")
        else:
            yield number, line


def looks_like_ndjson(first: bytes) -> bool:
    """Return whether the first line that is not blank shows the stream to be NDJSON."""
    text = first.removeprefix(_BOM).strip()
    if text[:1] not in (b"{", b"["):
        return False
    try:
        parse_line(text)
    except LineError:
        return False
    return True


def parse_line(line: bytes) -> Any:
    """Return one JSON document.

    Raises LineError, also for documents that parsers read differently: a repeated key, NaN.
    """
    try:
        return json.loads(line.removeprefix(_BOM), object_pairs_hook=_distinct, parse_constant=_no_constant)
    except LineError:
        raise
    except UnicodeDecodeError:
        raise LineError("not UTF-8") from None
    except RecursionError:
        raise LineError("nested too deep") from None
    except ValueError:
        raise LineError(NOT_JSON) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LineError("a repeated key")
    return found


def _no_constant(_: str) -> Any:
    raise LineError("not JSON: NaN or Infinity")


def _is_text(line: bytes) -> bool:
    """Return whether a line in a stream of documents is plain text.

    It is neither blank, nor JSON, nor begins like an object, a list of texts or a list of lists.
    """
    start = line.removeprefix(_BOM).lstrip()
    if not start or start.startswith(b"{"):
        return False
    if start[:1] != b"[":
        return not _is_json(line)
    return start[1:].lstrip()[:1] not in (b"{", b"[", b'"', b"]") and not _is_json(line)


def _is_json(line: bytes) -> bool:
    try:
        parse_line(line)
    except LineError as error:
        return str(error) != NOT_JSON
    return True


def scrub_mixed(
    scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]], complain: Complain, warn: Complain | None = None
) -> Iterator[bytes]:
    """Scrub documents as `scrub_ndjson` does, and other lines between them as `scrub_text` does."""
    for text, run in groupby(lines, lambda numbered: _is_text(numbered[1])):
        if text:
            yield from scrub_text(scrubber, run, complain, warn)
        else:
            yield from scrub_ndjson(scrubber, run, complain)


def explain_mixed(
    scrubber: "Explaining", lines: Iterable[tuple[int, bytes]], complain: Complain
) -> Iterator[dict[str, Any]]:
    """Yield findings of documents as `explain_ndjson` does, of other lines as `explain_text` does."""
    for text, run in groupby(lines, lambda numbered: _is_text(numbered[1])):
        yield from (explain_text if text else explain_ndjson)(scrubber, run, complain)


def scrub_ndjson(scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]], complain: Complain) -> Iterator[bytes]:
    """Yield each line scrubbed; unchanged ones byte for byte.

    A line that cannot be scrubbed, or that the policy refuses, is left out.
    """
    for number, line in lines:
        if not line.strip():
            yield line
            continue
        try:
            scrubbed = _document(scrubber, line)
        except Exception as error:  # noqa: BLE001  # fail closed on any error of the line
            complain(number, f"{_reason(error)}; left out")
        else:
            yield scrubbed


def _document(scrubber: "Scrubber", line: bytes) -> bytes:
    value = parse_line(line)
    scrubbed = scrubber.scrub_json(value)
    refused = _refused(scrubber, scrubbed.counts)
    if refused:
        raise LineError(f"refused by the policy: {', '.join(refused)}")
    if scrubbed.value == value:
        return line
    try:
        text = json.dumps(scrubbed.value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise LineError("a number is too large for a float") from None
    mark = _BOM if line.startswith(_BOM) else b""
    return mark + text.encode("utf-8", "backslashreplace") + line[len(line.rstrip(b"\r\n")) :]


def scrub_text(
    scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]], complain: Complain, warn: Complain | None = None
) -> Iterator[bytes]:
    """Yield the text scrubbed; bytes that are not UTF-8 pass unchanged.

    Findings that the policy refuses are redacted and reported. `warn` is called for lines with a name of `scrub_keys` outside of JSON,
    where it has no effect.
    """
    for number, text in blocks(scrubber, lines, complain):
        try:
            scrubbed = scrubber.scrub(text)
        except Exception as error:  # noqa: BLE001  # fail closed
            complain(number, f"{_reason(error)}; {text.count(chr(10)) or 1} lines from here left out")
            continue
        _report_refused(scrubber, scrubbed.findings, _lines(text, number), complain)
        if warn is not None and scrubber.removed_keys is not None:
            _warn_of_names(scrubber.removed_keys, scrubbed.text, number, warn)
        yield scrubbed.text.encode("utf-8", "surrogateescape")


def _report_refused(
    scrubber: "Scrubber",
    findings: "Iterable[Finding]",
    line_at: Callable[[int], tuple[int, int]],
    complain: Complain,
) -> None:
    """Report each line with findings that the policy refuses, once."""
    refused: dict[int, list[str]] = {}
    for finding in findings:
        line, _ = line_at(finding.start)
        for category in _refused(scrubber, {finding.family: 1}):
            if category not in refused.setdefault(line, []):
                refused[line].append(category)
    for line, categories in refused.items():
        complain(line, f"refused by the policy: {', '.join(categories)}; redacted")


def _lines(text: str, first: int) -> Callable[[int], tuple[int, int]]:
    """Return a function from a position to its line number, counted from `first`, and the position where that line begins.

    Counting from the start of the text for each finding would take time with the square of their number.
    """
    begins = [0, *(match.end() for match in re.finditer("\n", text))]

    def line_at(position: int) -> tuple[int, int]:
        place = bisect_right(begins, position) - 1
        return first + place, begins[place]

    return line_at


def _warn_of_names(keys: "RemovedKeys", text: str, number: int, warn: Complain) -> None:
    from assay_scrubber.keys_in_text import named_otherwise

    place = named_otherwise(keys, text)
    if place is not None:
        line = number + text.count("\n", 0, place)
        warn(line, "holds a name of scrub_keys outside of JSON, where scrub_keys do not apply; its value is kept")


def _unheard(_: int, __: str) -> None:
    pass


def blocks(
    scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]], complain: Complain = _unheard
) -> Iterator[tuple[int, str]]:
    """Yield each block: the number of its first line, and its text.

    No block ends within a finding that is no longer than the look-ahead, nor within a value redacted because of its key, if that has at
    most LINE_MAX_BYTES characters.
    """
    first, parts, size, enough = 0, list[str](), 0, BLOCK_CHARS + AHEAD_CHARS
    for number, line in lines:
        first = first or number
        parts.append(line.decode("utf-8", "surrogateescape"))
        size += len(parts[-1])
        if size >= enough:
            text = "".join(parts)
            if scrubber.removed_keys is not None and _ends_within(scrubber.removed_keys, text):
                if size < LINE_MAX_BYTES:
                    parts, enough = [text], 2 * size
                    continue
                complain(
                    first, f"a value of scrub_keys is longer than {LINE_MAX_BYTES} characters; only these are removed"
                )
            enough = BLOCK_CHARS + AHEAD_CHARS
            cut = _cut(scrubber, text)
            yield first, text[:cut]
            first += text.count("\n", 0, cut)
            parts, size = [text[cut:]], len(text) - cut
            if not parts[0]:
                first, parts = 0, []
    if parts:
        yield first, "".join(parts)


def _ends_within(keys: "RemovedKeys", text: str) -> bool:
    """Return whether a value under a redacted key continues beyond the end of the text."""
    from assay_scrubber.keys_in_text import removed_in

    return any(value.open for value in removed_in(keys, text))


def _cut(scrubber: "Scrubber", text: str) -> int:
    """Return the end of a block: at a line end, outside every finding, with the next finding's keyword after it."""
    cut = text.rfind("\n", 0, len(text) - AHEAD_CHARS) + 1 or text.find("\n") + 1 or len(text)
    try:
        findings = scrubber.scrub(text).findings
    except Exception:  # noqa: BLE001  # scrubbing the block itself reports it
        return cut
    findings.sort(key=lambda finding: finding.start)  # names come last
    starts = [finding.start for finding in findings]
    best, most = 0, -1
    for _ in range(_MOST_CUTS):
        following = bisect_left(starts, cut)
        if following and findings[following - 1].end > cut:
            cut = text.rfind("\n", 0, starts[following - 1]) + 1
        else:
            room = starts[following] - cut if following < len(starts) else ANNOUNCED_WITHIN
            if room > most:
                best, most = cut, room
            if room >= ANNOUNCED_WITHIN:
                break
            cut = text.rfind("\n", 0, cut - 1) + 1
        if not cut:
            break
    return best or len(text)


def explain_ndjson(
    scrubber: "Explaining", lines: Iterable[tuple[int, bytes]], complain: Complain
) -> Iterator[dict[str, Any]]:
    """Yield each finding of NDJSON: `line`, `value`, kind, `start` and `end`.

    Lines that `scrub_ndjson` leaves out are reported here too.

    `value`: its index among the document's values, from 0; the kind is that of `_shown`.
    """
    from assay_scrubber.json_scrub import findings_in

    for number, line in lines:
        if not line.strip():
            continue
        try:
            rows = [
                {"line": number, "value": place, **_shown(scrubber, finding)}
                for place, finding in findings_in(scrubber, parse_line(line))
            ]
        except Exception as error:  # noqa: BLE001
            complain(number, f"{_reason(error)}; not searched")
            continue
        yield from rows
        try:
            _document(scrubber, line)
        except Exception as error:  # noqa: BLE001
            complain(number, f"{_reason(error)}; scrubbing leaves the line out")


def explain_text(
    scrubber: "Explaining", lines: Iterable[tuple[int, bytes]], complain: Complain
) -> Iterator[dict[str, Any]]:
    """Yield each finding of text: the `line` it begins in, kind, `start` and `end`.

    Findings that the policy refuses are reported, as by `scrub_text`.

    `start` and `end` count from the beginning of that line.
    """
    for number, text in blocks(scrubber, lines, complain):
        try:
            findings = scrubber.scrub(text).findings
        except Exception as error:  # noqa: BLE001
            complain(number, f"{_reason(error)}; {text.count(chr(10)) or 1} lines from here not searched")
            continue
        line_at = _lines(text, number)
        _report_refused(scrubber, findings, line_at, complain)
        for finding in findings:
            line, begin = line_at(finding.start)
            row = {"line": line, **_shown(scrubber, finding)}
            yield row | {"start": finding.start - begin, "end": finding.end - begin}


def _shown(scrubber: "Explaining", finding: "Finding") -> dict[str, Any]:
    told = scrubber.told(finding)
    return {
        "family": finding.family,
        "rule": told.rule,
        "class": told.shape,
        "category": str(finding.category),
        "action": str(scrubber.policy.action(finding.family)),
        "start": finding.start,
        "end": finding.end,
    }


def _refused(scrubber: "Scrubber", counts: dict[str, int]) -> list[str]:
    if not scrubber.policy.actions:
        return []
    from assay_scrubber.policy import Action

    return scrubber.categories(name for name in counts if scrubber.policy.action(name) is Action.REFUSE)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, LineError) else f"cannot be scrubbed ({type(error).__name__})"
