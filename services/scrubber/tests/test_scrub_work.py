"""Work grows with the text and no faster. Counted, not timed: calls of functions, Python's own and the engine's."""

import sys
from types import FrameType
from typing import Any

import pytest

from assay_scrubber.engine import Scrubber

# Each was once the slowest that a search for slow texts found: findings that a replacement brings closer, zero-width
# characters that have a text read twice, long runs of groups that are nearly cards.
SLOW = [
    "4111 1111 1111 1112 a@b.co\u00a0\u200b",
    ".:::4111 1111 1111 1112 a@b.co::\u200b",
    "a@b.co\\n\\\\4111 1111 1111 1112 \U0001f600**",
    "4111 1111 1111 1112 ://&#64;\u200b+44 20 7946 0958 \\n@",
    "born dot dot @phone \u200b\u200b5105 5105 5105 5105 5105 5105 ",
    "\\bearer call 5551234567, call 5551234567, ",
    "0x0x://\u200b+44 20 7946 0958 123",
    "Jan 1, 1990\\@\u200bprivate-lines5105 123123123\r\n",
    "1234567 a ",
    "eyJaaaaaaaaaaaa.aaaaaaaa ",
    "a:b@",
    "key='a",
]
SIZE, TIMES = 1_500, 8


def calls(scrubber: Scrubber, text: str) -> int:
    count = 0

    def counting(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        scrubber.scrub(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", SLOW, ids=ascii)
def test_eight_times_the_text_is_at_most_eight_times_the_work(scrubber: Scrubber, unit: str) -> None:
    once = unit * (SIZE // len(unit))
    scrubber.scrub(once)  # what is loaded on first use is no work of this text
    little, much = calls(scrubber, once), calls(scrubber, once * TIMES)
    assert much <= TIMES * little * 1.1


@pytest.mark.parametrize("unit", SLOW, ids=ascii)
def test_a_slow_text_is_scrubbed_whole_and_stays_so(scrubber: Scrubber, unit: str) -> None:
    result = scrubber.scrub(unit * (20_000 // len(unit)))
    assert scrubber.scrub(result.text) == (result.text, [])


def test_a_text_in_which_no_gate_opens_costs_a_handful_of_calls(scrubber: Scrubber) -> None:
    prose = "the report shows that every region answered faster than before "
    assert calls(scrubber, prose * 400) == calls(scrubber, prose * 4)
