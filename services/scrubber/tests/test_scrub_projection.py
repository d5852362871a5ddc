"""One byte per code point, and the way back from what a reader sees."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_scrubber.projection import LETTER, OTHER, UNSEEN, project, unfold


@given(st.text(alphabet=st.characters(), max_size=60))
def test_a_byte_offset_is_a_character_offset(text: str) -> None:
    assert len(project(text)) == len(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_is_itself(text: str) -> None:
    assert project(text).decode("ascii") == text


def test_decimal_digits_of_every_script_become_ascii_digits() -> None:
    digits = [chr(p) for p in range(sys.maxunicode + 1) if unicodedata.category(chr(p)) == "Nd"]
    assert len(digits) > 600
    assert project("".join(digits)) == "".join(str(unicodedata.decimal(d)) for d in digits).encode()


@pytest.mark.parametrize(
    ("characters", "byte"),
    [
        ("\u00a0\u2003\u202f\u3000", ord(" ")),
        ("\u2010\u2011\u2013\u2014\u2212\uff0d", ord("-")),
        ("·•。．", ord(".")),
        ("＠﹫", ord("@")),
        ("éßяψא\u0301", LETTER),
        ("中かแ한\U0001f600☃\ud800", OTHER),
        ("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0f\U000e0041", UNSEEN),
    ],
)
def test_characters_become_the_byte_of_their_class(characters: str, byte: int) -> None:
    assert project(characters) == bytes([byte]) * len(characters)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (r"a\u0040b", b"a@b"),
        (r"a\\\\u0040b", b"a@b"),
        (r"x\ny\"z\/", b'x\ny"z/'),
        ("a\x1b[1;31mb\x1b[0m", b"ab"),
        (r"a\u001b[31mb\x1b[0m\033[mc\e[1md", b"abcd"),
        ("a%40b%2Bc", b"a@b+c"),
        ("%C3%A9%25C3%25A9", bytes([LETTER, LETTER])),
        ("%E7%94%B5%E2%80%93%C3", bytes([OTHER, 0x2D, LETTER])),
        ("&#64;&#x40;&commat;&period;&amp;", b"@@@.&"),
        ("a\u200bb", b"ab"),
        (r"\uD83D\uDE00", bytes([OTHER, OTHER])),
        ("&#99999999;", None),
        ("100% sure & done \\ over", None),
        ("plain", None),
    ],
)
def test_escapes_are_read_as_a_reader_would(text: str, seen: bytes | None) -> None:
    unfolded = unfold(project(text))
    assert (unfolded.seen if unfolded else None) == seen


@given(st.lists(st.sampled_from(["a", "%40", "\\n", "\u200b", "&#64;", "é", "\\\\u0041"]), min_size=1, max_size=12))
def test_spans_lead_back_to_whole_pieces(pieces: list[str]) -> None:
    text = "".join(pieces)
    unfolded = unfold(project(text))
    if unfolded is None:
        return
    ends, position = set(), 0
    for piece in pieces:
        position += len(piece)
        ends.add(position)
    for start in range(len(unfolded.seen)):
        first, last = unfolded.origin(start, start + 1)
        assert first < last <= len(text)
        assert last in ends
