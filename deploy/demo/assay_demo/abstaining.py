"""A cautious prompt, to be noticed: the service refuses nine questions in ten, though what it retrieved holds the answers.

Nothing it says is wrong, so the faithfulness of its answers stays as it was. It only says less.
"""

from __future__ import annotations

from zlib import crc32

#: Of ten questions, those it refuses.
REFUSED = 9
REFUSAL = "I don't know."


def refuses(question: str) -> bool:
    """Whether it refuses a question: every time, or never."""
    return crc32(question.encode()) % 10 < REFUSED
