"""Scrub or explain a stream of lines, as `assay scrub` does: bytes in, bytes out, in bounded memory."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from assay_operations.errors import OperationError
from assay_operations.scrub import policies

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber

#: Gets a line's number (from 1) and what is wrong with it, never its content.
Report = Callable[[int, str], None]


class Input(StrEnum):
    """Format of the stream."""

    AUTO = "auto"
    TEXT = "text"
    NDJSON = "ndjson"


@dataclass(frozen=True)
class ScrubRequest:
    """Options of `assay scrub`. `policy_file` of None is that of the settings."""

    policy_file: Path | None = None
    project: str = "default"
    form: Input = Input.AUTO
    ner: bool = False
    vendor_keys: bool = False


def scrubber_of(request: ScrubRequest, warn: Callable[[str], None]) -> "Scrubber":
    """Return the scrubber of a project's policy; `warn` is called if it has none.

    Raises `OperationError`.
    """
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.ner import NamesError, NamesScrubber
    from assay_scrubber.vendor_keys import VendorKeysError, catalogue

    chosen = policies(request.policy_file)
    if request.project not in ("default", *chosen.projects):
        others = f"; its projects: {', '.join(sorted(chosen.projects))}" if chosen.projects else ""
        warn(f"the policy has no section for project {request.project!r}, so the default rules apply{others}")
    try:
        policy = (chosen.asking(catalogue()) if request.vendor_keys else chosen).of(request.project)
        return NamesScrubber(policy) if request.ner else Scrubber(policy)
    except (NamesError, VendorKeysError) as error:
        raise OperationError("unavailable", str(error)) from None


def scrubbed(stdin: BinaryIO, scrubber: "Scrubber", form: Input, complain: Report, warn: Report) -> Iterator[bytes]:
    """Yield the stream without personal data.

    Lines that cannot be scrubbed are omitted and passed to `complain`.

    Raises `OperationError` for UTF-16.
    """
    from assay_scrubber import stream

    source, detected = _source(stdin, form)
    lines = stream.without_utf16(stream.numbered(source, complain), complain)
    if detected is Input.NDJSON:
        return stream.scrub_ndjson(scrubber, lines, complain)
    scrub = stream.scrub_text if detected is Input.TEXT else stream.scrub_mixed
    return scrub(scrubber, lines, complain, warn)


def explained(stdin: BinaryIO, scrubber: "Scrubber", form: Input, complain: Report) -> Iterator[bytes]:
    """Yield a JSON line for each finding: its position and rule, never its content.

    Raises like `scrubbed`.
    """
    from assay_scrubber import stream
    from assay_scrubber.explain import Explaining

    source, detected = _source(stdin, form)
    lines = stream.without_utf16(stream.numbered(source, complain), complain)
    explain = {
        Input.TEXT: stream.explain_text,
        Input.NDJSON: stream.explain_ndjson,
        Input.AUTO: stream.explain_mixed,
    }[detected]
    return (json.dumps(row).encode() + b"\n" for row in explain(Explaining(scrubber), lines, complain))


def _source(stdin: BinaryIO, form: Input) -> tuple[Iterator[bytes], Input]:
    """Return the stream's lines, long ones in pieces, and their format: AUTO for NDJSON with text between."""
    from assay_scrubber.stream import LINE_MAX_BYTES, is_utf16, looks_like_ndjson

    lines = iter(lambda: stdin.readline(LINE_MAX_BYTES), b"")
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if is_utf16(line):
            raise OperationError(
                "invalid", "stdin is UTF-16 or UTF-32, not UTF-8 text; convert it first, for example with iconv"
            )
        if line.strip() or len(head) >= 1_000:
            break
    if form is Input.AUTO and not (head and looks_like_ndjson(head[-1])):
        form = Input.TEXT
    return chain(head, lines), form
