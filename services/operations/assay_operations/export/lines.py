"""Pass on the bytes of an answer as whole lines that are rows. Pure.

A store that fails in the middle of an answer has already sent its status, so its error is text in place of rows.
"""

import re
from collections.abc import Iterable, Iterator


class BrokenAnswerError(Exception):
    """An answer of the store that broke off. The message is the engine's error, if there is one."""


class Lines:
    """Passes on whole lines of an answer, and counts them."""

    def __init__(self, line_start: str) -> None:
        self._start = line_start.encode()
        self._stray = re.compile(rb"\n(?!" + re.escape(self._start) + rb")")
        self.rows = 0
        self.size = 0

    def through(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the bytes of blocks, in whole lines.

        Raises `BrokenAnswerError` before anything that is not a row.
        """
        rest: list[bytes] = []  # start of a line that may span many blocks
        for block in blocks:
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest.append(block)
                continue
            whole = b"".join((*rest, block[:cut]))
            rest = [block[cut:]] if cut < len(block) else []
            self._check(whole)
            self.rows += whole.count(b"\n")
            self.size += len(whole)
            yield whole
        if rest:
            raise BrokenAnswerError(_said(b"".join(rest)))

    def _check(self, whole: bytes) -> None:
        if not whole.startswith(self._start):
            raise BrokenAnswerError(_said(whole))
        if stray := self._stray.search(whole, 0, len(whole) - 1):
            raise BrokenAnswerError(_said(whole[stray.end() :]))


def _said(text: bytes) -> str:
    """Return the engine's error, without a row around it."""
    match = re.search(rb"Code: \d+\.? ?[^\r\n]{0,300}", text)
    return match[0].decode(errors="replace") if match else "the answer breaks off"
