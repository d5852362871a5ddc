"""What of an answer's bytes may be passed on: whole lines that are rows. Pure.

A store that fails in mid-answer has already said that all is well, so it can only put its error, as text, where rows should be.
"""

import re
from collections.abc import Iterable, Iterator


class BrokenAnswerError(Exception):
    """The store's answer stopped being rows. The message is what the engine said, if it said anything."""


class Lines:
    """Passes on the whole lines of an answer, and counts them."""

    def __init__(self, line_start: str) -> None:
        self._start = line_start.encode()
        self._stray = re.compile(rb"\n(?!" + re.escape(self._start) + rb")")
        self.rows = 0
        self.size = 0

    def through(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The blocks' bytes up to each one's last line feed. Raises `BrokenAnswerError` before passing on anything but rows."""
        rest: list[bytes] = []  # of a line that may span many blocks
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
    """The engine's own words, without a row that may stand around them."""
    found = re.search(rb"Code: \d+\.? ?[^\r\n]{0,300}", text)
    return found[0].decode(errors="replace") if found else "the answer breaks off"
