"""Scrubbing of a stream, line by line or block by block, in bounded memory. Pure: lines in, lines out, complaints to a callback.

A line of NDJSON is one document. Text is scrubbed in blocks of whole lines, each looked at together with what follows it, so that a private
key of many lines is found. What cannot be scrubbed is left out and complained of, never passed on.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay_scrubber.engine import Finding, Scrubber
    from assay_scrubber.explain import Explaining

#: Longer lines are left out: a line is held in memory whole.
LINE_MAX_BYTES = 16 * 1024 * 1024
#: Text is handed on in blocks of about so many characters, and each is looked at with so many more behind it.
BLOCK_CHARS, AHEAD_CHARS = 256 * 1024, 64 * 1024
#: No word announces what stands further behind it. Where findings are denser, the best of so many ends of lines has to do.
ANNOUNCED_WITHIN, _MOST_CUTS = 256, 64

#: Line number (from 1) and what is wrong with it; never its content.
Complain = Callable[[int, str], None]


class LineError(ValueError):
    """A line that cannot be scrubbed. The message holds nothing of it."""


def numbered(lines: Iterable[bytes], complain: Complain) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, from 1. `lines` come in pieces of at most LINE_MAX_BYTES; a line of several pieces is left out."""
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


def looks_like_ndjson(first: bytes) -> bool:
    """Whether the first line that is not blank says that the stream is NDJSON."""
    text = first.removeprefix(b"\xef\xbb\xbf").strip()
    if text[:1] not in (b"{", b"["):
        return False
    try:
        parse_line(text)
    except LineError:
        return False
    return True


def parse_line(line: bytes) -> Any:
    """One JSON document. Raises LineError, also for what another parser might read differently: a key twice, NaN."""
    try:
        return json.loads(line.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=_distinct, parse_constant=_no_constant)
    except LineError:
        raise
    except UnicodeDecodeError:
        raise LineError("not UTF-8") from None
    except RecursionError:
        raise LineError("nested too deep") from None
    except ValueError:
        raise LineError("not JSON") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LineError("a key is there twice")
    return found


def _no_constant(_: str) -> Any:
    raise LineError("not JSON: NaN and Infinity are not")


def scrub_ndjson(scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]], complain: Complain) -> Iterator[bytes]:
    """Each line scrubbed; unchanged ones byte for byte. A line that cannot be scrubbed, or that the policy refuses, is left out."""
    for number, line in lines:
        if not line.strip():
            yield line
            continue
        try:
            scrubbed = _document(scrubber, line)
        except Exception as error:  # noqa: BLE001  # fail closed, whatever is wrong with the line
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
        raise LineError("a number is too large to be written again") from None
    return text.encode("utf-8", "backslashreplace") + line[len(line.rstrip(b"\r\n")) :]


def scrub_text(scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]], complain: Complain) -> Iterator[bytes]:
    """The text scrubbed; bytes that are not UTF-8 pass as they are. What the policy refuses is redacted, and complained of."""
    for number, text in blocks(scrubber, lines):
        try:
            scrubbed = scrubber.scrub(text)
        except Exception as error:  # noqa: BLE001  # fail closed
            complain(number, f"{_reason(error)}; {text.count(chr(10)) or 1} lines from here left out")
            continue
        refused = {f.start: c for f in scrubbed.findings for c in _refused(scrubber, {f.family: 1})}
        for start, category in refused.items():
            complain(number + text.count("\n", 0, start), f"refused by the policy: {category}; redacted")
        yield scrubbed.text.encode("utf-8", "surrogateescape")


def blocks(scrubber: "Scrubber", lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
    """Each block: the number of its first line, and its text. None ends within a finding that is no longer than what is looked ahead."""
    first, parts, size = 0, list[str](), 0
    for number, line in lines:
        first = first or number
        parts.append(line.decode("utf-8", "surrogateescape"))
        size += len(parts[-1])
        if size >= BLOCK_CHARS + AHEAD_CHARS:
            text = "".join(parts)
            cut = _cut(scrubber, text)
            yield first, text[:cut]
            first += text.count("\n", 0, cut)
            parts, size = [text[cut:]], len(text) - cut
            if not parts[0]:
                first, parts = 0, []
    if parts:
        yield first, "".join(parts)


def _cut(scrubber: "Scrubber", text: str) -> int:
    """Where a block ends: behind a line, outside of every finding, and so far before the next that what announces it goes with it."""
    cut = text.rfind("\n", 0, len(text) - AHEAD_CHARS) + 1 or text.find("\n") + 1 or len(text)
    try:
        findings = scrubber.scrub(text).findings
    except Exception:  # noqa: BLE001  # the block itself will say so
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
    """Each finding: `line`, `value` (its place among the document's values, from 0), what it is (`_shown`), `start` and `end` in it."""
    from assay_scrubber.walk import findings_in

    for number, line in lines:
        if not line.strip():
            continue
        try:
            rows = [
                {"line": number, "value": place, **_shown(scrubber, finding)}
                for place, finding in findings_in(scrubber, parse_line(line))
            ]
        except Exception as error:  # noqa: BLE001
            complain(number, f"{_reason(error)}; not looked at")
            continue
        yield from rows


def explain_text(
    scrubber: "Explaining", lines: Iterable[tuple[int, bytes]], complain: Complain
) -> Iterator[dict[str, Any]]:
    """Each finding: `line` it begins in, what it is (`_shown`), `start` and `end` counted from the beginning of that line."""
    for number, text in blocks(scrubber, lines):
        try:
            findings = scrubber.scrub(text).findings
        except Exception as error:  # noqa: BLE001
            complain(number, f"{_reason(error)}; {text.count(chr(10)) or 1} lines from here not looked at")
            continue
        for finding in findings:
            begin = text.rfind("\n", 0, finding.start) + 1
            row = {"line": number + text.count("\n", 0, finding.start), **_shown(scrubber, finding)}
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
