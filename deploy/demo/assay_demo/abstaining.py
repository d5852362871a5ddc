"""Scenario of an overcautious prompt: the service refuses nine questions in ten.

It refuses although it retrieved the answers.

Its answers are not wrong, so their faithfulness does not change; there are only fewer of them. Drift detection has to notice it.
"""

from __future__ import annotations

from zlib import crc32

#: Number of refused questions of ten.
REFUSED = 9
REFUSAL = "I don't know."


def refuses(question: str) -> bool:
    """Return True if a question is refused; the same question always has the same result."""
    return crc32(question.encode()) % 10 < REFUSED
