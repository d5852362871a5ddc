"""Cut a batch into the bytes of its events, without decoding them. Pure.

Each event keeps the bytes that the client sent: numbers and texts are not written again. Events that are not valid
JSON are found later, one by one.
"""

import re
from collections.abc import Iterator

from assay_gateway.json_cut import PAUSE_STEPS, SPACE, CutError, Cutter
from assay_gateway.refusal import RefusedError, malformed
from assay_schema.limits import NESTING_MAX

#: Most events of a request, and most lines of NDJSON with the blank ones.
ITEMS_MAX, LINES_MAX = 10_000, 50_000
#: Deepest nesting of brackets in a batch: that of free-form JSON, and what is around it.
DEPTH_MAX = NESTING_MAX + 16

_ENVELOPE = re.compile(rb'%b{%b"events"%b:%b(?=\[)' % (SPACE, SPACE, SPACE, SPACE))
_ARRAY = re.compile(rb"%b(?=\[)" % SPACE)
_END_OF_ENVELOPE = re.compile(rb"%b}" % SPACE)
_LINE = re.compile(rb"[^\n]+|\n{1,65536}")


def json_items(body: bytes) -> Iterator[bytes | None]:
    """Yield the events of an array, or of `{"events": [...]}`, and None where others should run.

    Raises `RefusedError` if the batch is neither, not complete, or too long.
    """
    envelope = _ENVELOPE.match(body)
    begin = envelope or _ARRAY.match(body)
    if begin is None:
        raise malformed(
            "invalid_body", 'the body must be a JSON array of events, {"events": [...]} alone, or NDJSON with its type'
        )
    cutter = Cutter(body, begin.end(), depth_max=DEPTH_MAX)
    count = 0
    try:
        for found in cutter.ranges():
            if found is None:
                yield None
            else:
                if count >= ITEMS_MAX:
                    raise _too_many()
                count += 1
                start, stop = found
                yield body[start:stop].strip(b" \t\r\n")  # an id may be made of these bytes
    except CutError as error:
        raise malformed(error.code, str(error)) from None
    if envelope is not None:
        end = _END_OF_ENVELOPE.match(body, cutter.at)
        cutter.at = end.end() if end else cutter.at
    if not cutter.ends() or (envelope is not None and end is None):
        wrong = 'there is more after the array of events; {"events": [...]} has no other members; nothing was stored'
        raise malformed("invalid_json", wrong)


def lines(body: bytes) -> Iterator[bytes | None]:
    """Yield the lines of NDJSON that are not blank, and None where others should run."""
    count = 0
    for step, match in enumerate(_LINE.finditer(body), 1):
        if step % PAUSE_STEPS == 0:
            yield None
        if step > 2 * LINES_MAX:  # a line, and what ends it
            raise malformed("too_many_events", f"more than {LINES_MAX} lines in a request; send smaller batches")
        if line := match[0].strip():
            if count >= ITEMS_MAX:
                raise _too_many()
            count += 1
            yield line


def _too_many() -> RefusedError:
    return malformed("too_many_events", f"more than {ITEMS_MAX} events in a request; send smaller batches")
