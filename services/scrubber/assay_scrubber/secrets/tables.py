"""Match secrets in columns named by a table's head: CSV, Markdown, HTML, aligned text, `INSERT`."""

import re
from collections.abc import Generator, Iterator
from itertools import islice

from assay_scrubber.family import LiteralRule, View, nothing
from assay_scrubber.json_scrub import hint_of

from .members import keyed
from .values import is_token, is_written, is_written_with_digits

_NAMES = (
    rb"(?:[a-z0-9]{1,24}[_\- .])?(?:pass(?:word|wd|phrase|code|wort)|pwd|(?:api|access|private|secret|signing|client)[_\- ]?key|secret"
    rb"|(?:auth|access|refresh|api|bearer|session)?[_\- ]?token|%b)(?:[_\- ]?(?:key|value|plain))?"
)
_FOREIGN = rb"contrase.a|senha|wachtwoord|kennwort|mot[ _]de[ _]passe|has\x80o|heslo"
_NAME = re.compile(rb"(?:%b|pw)" % (_NAMES % _FOREIGN))
_PASSWORD = re.compile(rb"pass|pwd|contrase|senha|wachtwoord|kennwort|has\x80o|heslo")
_HEAD = re.compile(
    rb"(?:pass(?:word|wd|phrase|code|wort)|pwd?|key|secret|token|contrase\x80a|senha|wachtwoord|kennwort"
    rb"|passe)[\w \-]{0,16}?[\"'`*]{0,4}(?:[ \t]{0,16}[,|;\t\n\r]|  )"
)
_END = rb"[\"'`*]?(?:[ \t]*[,|;\t\n\r]|  )"
# A table of names and values: the name in each row decides about the value in the same row.
_OF_NAMES = re.compile(rb"(?:[a-z]{1,16}[_\- ]?)?(?:name|key|variable|setting|parameter|option|property|field|item)")
_OF_VALUES = re.compile(rb"(?:[a-z]{1,16}[_\- ]?)?(?:value|val|content)")
_VALUES_HEAD = re.compile(rb"val(?:ue)?[\"'`*]{0,4}(?:[ \t]{0,16}[,|;\t\n\r]|  )")
_LONGEST_LINE, _MOST_ROWS, _MOST_CELLS = 2_000, 200, 64
_RULER = re.compile(rb"[\s|:+\-=]+")
_LABEL = re.compile(rb"[\w .\-\x80#/()]{0,40}")
_CELL = {
    mark: re.compile(
        rb"[ \t]*(?:\"((?:[^\"]|\"\")*)\"|'([^'\n]*)'|([^%b\n]*))(?:%b|$)" % (re.escape(mark), re.escape(mark))
    )
    for mark in (b",", b"|", b";", b"\t")
}


_ALIGNED = b"  "
_ALIGNED_CELL = re.compile(rb"\S++(?: \S++)*+")


def _cells(line: bytes, mark: bytes, offset: int) -> list[tuple[int, int]]:
    """Return the spans of a row's cells, without quotes and surrounding spaces. Aligned cells are two or more spaces apart."""
    cells: list[tuple[int, int]] = []
    if mark == _ALIGNED:
        return [(offset + m.start(), offset + m.end()) for m in islice(_ALIGNED_CELL.finditer(line), _MOST_CELLS)]
    position = 0
    while position <= len(line) and len(cells) < _MOST_CELLS:
        cell = _CELL[mark].match(line, position)
        if cell is None:
            break
        group = next(number for number in (1, 2, 3) if cell.group(number) is not None)
        start, end = cell.span(group)
        text = line[start:end]
        start += len(text) - len(text.lstrip())
        end -= len(text) - len(text.rstrip())
        cells.append((offset + start, offset + max(start, end)))
        if cell.end() == position or cell.end() == len(line):
            break
        position = cell.end()
    return cells


def _line(text: bytes, position: int) -> tuple[int, int]:
    end = text.find(b"\n", position)
    return text.rfind(b"\n", 0, position) + 1, len(text) if end < 0 else end


def _is_secret(name: bytes, value: bytes) -> bool:
    if name == b"pw":
        return is_written_with_digits(value)
    return is_written(value) if _PASSWORD.search(name) else is_token(value)


def _unread(view: View, start: int) -> bool:
    """Return True once for each line, so that a table's head and rows are read only once."""
    key = ("table", b"%d" % start)
    return not view.judged.get(key) and view.judged.setdefault(key, True)


# The string that a table begins in, in a line of JSON or of a program: `{"body": "user,password\\n…"}` as a reader sees it.
_IN_STRING = re.compile(rb"[:,=\[({][ \t]{0,4}[brun]?(?P<quote>[\"'])[^\"'\n]{0,160}$")
_LONGEST_HEAD = 200


def _columns(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the secrets in the columns under a head: a row of labels, then rows with as many cells."""
    low, (start, end) = view.low, _line(view.low, match.start())
    if end - start <= _LONGEST_LINE and _unread(view, start) and (yield from _table(view, start, end, None)):
        return
    opening = _IN_STRING.search(low, max(start, match.start() - _LONGEST_HEAD), match.start())
    if opening is None:
        return
    first, quote = opening.end("quote"), opening["quote"]
    if low.find(quote, first, end) < 0 and end - first <= _LONGEST_LINE and _unread(view, first):
        yield from _table(view, first, end, quote)


def _names_and_values(names: list[bytes]) -> tuple[int, int] | None:
    """Return the indexes of the name column and the value column of a table."""
    of_names = [number for number, name in enumerate(names) if _OF_NAMES.fullmatch(name)]
    of_values = [number for number, name in enumerate(names) if _OF_VALUES.fullmatch(name)]
    return (of_names[0], of_values[0]) if of_names and of_values else None


def _is_named(name: bytes, value: bytes) -> bool:
    judge = keyed(hint_of(name.strip(b"\"'`*").rpartition(b"/")[2].decode("latin-1")))
    return judge is not None and judge(value)


def _is_aligned(heads: list[tuple[int, int]], cells: list[tuple[int, int]]) -> bool:
    """Return whether the cells of a row are aligned with those of the head."""
    return all(head[0] - heads[0][0] == cell[0] - cells[0][0] for head, cell in zip(heads, cells, strict=True))


def _table(view: View, start: int, end: int, quote: bytes | None) -> Generator[tuple[int, int], None, bool]:
    """Yield the secrets of the table whose head spans `start` to `end`; return whether it is a head.

    `quote`: the quote that ends the table, if it is in a string.
    """
    low = view.low
    head = low[start:end].rstrip(b"\r")
    mark = next((mark for mark in (b"|", b"\t", b";", b",", _ALIGNED) if head.find(mark) >= 0), None)
    if mark is None:
        return False
    heads = _cells(head, mark, start)
    names = [low[a:b].strip(b"\"'`*") for a, b in heads]
    wanted = [number for number, name in enumerate(names) if _NAME.fullmatch(name)]
    named = _names_and_values(names)
    if len(names) < 2 or not (wanted or named) or not all(_LABEL.fullmatch(name) for name in names):
        return False
    for _ in range(_MOST_ROWS):
        start, end = end + 1, _line(low, end + 1)[1]
        closed = low.find(quote, start, end) if quote is not None else -1
        last = closed if closed >= 0 else end
        if start >= len(low) or last - start > _LONGEST_LINE or not _unread(view, start):
            return True
        line = view.raw[start:last].rstrip(b"\r")
        ruler = _RULER.fullmatch(line) and line.strip()
        cells = _cells(line, mark, start)
        if not ruler and len(cells) != len(names):
            return True
        if not ruler and mark == _ALIGNED and not _is_aligned(heads, cells):
            return True
        for number in () if ruler else wanted:
            a, b = cells[number]
            if _is_secret(names[number], view.raw[a:b]):
                yield a, b
        if named and not ruler and _is_named(*(view.raw[slice(*cells[number])] for number in named)):
            yield cells[named[1]]
        if closed >= 0:
            return True
    return True


# A table of HTML, whose head is a row of `th`.
_TH = re.compile(rb"</th>")
_TAGS = re.compile(rb"<[^<>]{0,64}>")
_HTML_CELL = re.compile(rb"<t[hd][^<>]{0,128}>(?P<cell>(?:[^<]|<(?!/?t[hdr]\b)){0,512}+)</t[hd]>")
_NEXT_ROW = re.compile(rb"(?:\s|</?t(?:head|body)[^<>]{0,64}>){0,16}+<tr[^<>]{0,128}>")


def _shown(view: View, cell: re.Match[bytes]) -> tuple[int, int]:
    """Return the span of a cell's visible text, without the tags around it."""
    start, end = cell.span("cell")
    while (tag := _TAGS.match(view.raw, start, end)) is not None:
        start = tag.end()
    close = view.raw.find(b"<", start, end)
    end = close if close >= 0 else end
    text = view.raw[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())


def _html(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the secrets of an HTML table."""
    first = view.low.rfind(b"<tr", max(0, match.start() - _LONGEST_LINE), match.start())
    last = view.low.find(b"</tr>", match.start(), match.start() + _LONGEST_LINE)
    if first < 0 or last < 0 or not _unread(view, first):
        return
    names = [view.low[slice(*_shown(view, cell))] for cell in _HTML_CELL.finditer(view.low, first, last)]
    wanted = [number for number, name in enumerate(names) if _NAME.fullmatch(name)]
    named = _names_and_values(names)
    if len(names) < 2 or not (wanted or named):
        return
    for _ in range(_MOST_ROWS):
        row = _NEXT_ROW.match(view.low, last + len(b"</tr>"))
        last = view.low.find(b"</tr>", row.end(), row.end() + _LONGEST_LINE) if row is not None else -1
        if row is None or last < 0:
            return
        cells = [_shown(view, cell) for cell in _HTML_CELL.finditer(view.low, row.end(), last)]
        if len(cells) != len(names):
            return
        for number in wanted:
            if _is_secret(names[number], view.raw[slice(*cells[number])]):
                yield cells[number]
        if named and _is_named(*(view.raw[slice(*cells[number])] for number in named)):
            yield cells[named[1]]


_INSERT = re.compile(
    rb"insert (?:ignore )?into [\w.\"`\[\]]{1,80} ?\((?P<names>[^()]{1,2000})\)\s{0,8}values\s{0,8}(?P<rows>\([^;]{1,8000}+)"
)
_ROW = re.compile(rb"\(((?:[^()'\"]|'(?:[^']|'')*'|\"[^\"]*\"|\([^()]*\))*+)\)")


def _inserted(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    names = [name.strip(b" \t\r\n\"`[]'") for name in match["names"].split(b",")]
    wanted = [number for number, name in enumerate(names) if _NAME.fullmatch(name)]
    if not wanted:
        return
    for row in _ROW.finditer(view.raw, *match.span("rows")):
        cells = _cells(row.group(1).replace(b"\n", b" "), b",", row.start(1))
        if len(cells) != len(names):
            continue
        for number in wanted:
            a, b = cells[number]
            if view.raw[a - 1 : a] in (b"'", b'"') and _is_secret(names[number], view.raw[a:b]):
                yield a, b


RULES = (
    *(
        LiteralRule(_HEAD, nothing, lower=True, anchored=True, needle=word, spread=_columns, opens=opens + _END)
        for word, opens in (
            (b"pass", rb"pass(?:word|wd|phrase|code|wort)?"), (b"pw", rb"(?:^|[,|;\t\n\"' ])pw"), (b"contrase", rb"contrase.a"),
            *((word, word) for word in (b"pwd", b"key", b"secret", b"token", b"senha", b"wachtwoord", b"kennwort")),
        )
    ),
    *(
        LiteralRule(
            _VALUES_HEAD,
            nothing,
            lower=True,
            anchored=True,
            needle=b"val",
            spread=_columns,
            opens=word + rb"[\"'`*]?(?:[ \t]*[,|;\t]|  +)[ \"'`*]*(?:[a-z]+[ ,|;\t]+)?[a-z_]*val",
        )
        for word in (b"name", b"key", b"variable", b"setting", b"parameter", b"option", b"property", b"field", b"item")
    ),
    LiteralRule(_TH, nothing, lower=True, anchored=True, needle=b"</th>", spread=_html),
    LiteralRule(_INSERT, nothing, lower=True, anchored=True, needle=b"insert i", spread=_inserted),
)  # fmt: skip
