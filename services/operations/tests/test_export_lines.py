"""What of the store's answer is passed on."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_operations.export.lines import BrokenAnswerError, Lines

START = '{"schema_version":1,'
ROWS = b"".join(f'{START}"id":{n},"query":"text {n}"}}\n'.encode() for n in range(20))


@given(cuts=st.lists(st.integers(0, len(ROWS)), max_size=30))
def test_rows_come_through_unchanged_and_counted_however_the_network_cut_them(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(ROWS)]
    through = Lines(START)
    pieces = list(through.through(ROWS[a:b] for a, b in pairwise(edges) if a < b))
    assert b"".join(pieces) == ROWS
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert (through.rows, through.size) == (20, len(ROWS))


def test_an_empty_answer_is_no_rows() -> None:
    through = Lines(START)
    assert list(through.through([])) == []
    assert through.rows == 0


@pytest.mark.parametrize(
    "tail",
    [
        b"Code: 241. DB::Exception: Query memory limit exceeded\n",
        b"__exception__\r\nabcdefgh\r\nCode: 241. DB::Exception: Query memory limit exceeded\n68 abcdefgh\r\n__exception__\r\n",
        b'{"exception": "Code: 241. DB::Exception: Query memory limit exceeded"}\n',
        b"\nCode: 241. DB::Exception: Query memory limit exceeded",
    ],
)
@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_an_error_in_mid_answer_is_raised_and_never_passed_on(tail: bytes, block: int) -> None:
    answer = ROWS + tail
    through = Lines(START).through(answer[n : n + block] for n in range(0, len(answer), block))
    passed: list[bytes] = []
    with pytest.raises(BrokenAnswerError, match=r"Code: 241\. .*memory limit exceeded|breaks off"):
        passed.extend(through)
    assert ROWS.startswith(b"".join(passed))


def test_a_row_cut_in_the_middle_is_not_passed_on() -> None:
    through = Lines(START).through([ROWS[:-10]])
    assert next(through) == ROWS[: ROWS[:-1].rfind(b"\n") + 1]
    with pytest.raises(BrokenAnswerError, match="breaks off"):
        next(through)


def test_the_message_never_quotes_a_row() -> None:
    with pytest.raises(BrokenAnswerError) as raised:
        list(Lines(START).through([ROWS, b'{"query": "someone\'s words"}\n']))
    assert "words" not in str(raised.value)
