"""`assay scrub` without a process: lines in, lines out, complaints that hold nothing of them."""

import io
import json
from collections.abc import Iterator
from itertools import pairwise

import pytest

from assay_scrubber import stream as scrub_stream
from assay_scrubber.custom import custom_family
from assay_scrubber.engine import Scrubber
from assay_scrubber.explain import Explaining
from assay_scrubber.policy import Action, Policy
from assay_scrubber.taxonomy import Category

SCRUBBER = Scrubber()
CARD = 4111111111111111


class Run:
    """One stream scrubbed."""

    def __init__(
        self, data: bytes, *, scrubber: Scrubber = SCRUBBER, ndjson: bool = False, explain: bool = False
    ) -> None:
        self.complaints: list[tuple[int, str]] = []
        lines = scrub_stream.numbered(io.BytesIO(data), lambda *complaint: self.complaints.append(complaint))
        complain = lambda *complaint: self.complaints.append(complaint)  # noqa: E731
        if explain:
            work = scrub_stream.explain_ndjson if ndjson else scrub_stream.explain_text
            self.rows = list(work(Explaining(scrubber), lines, complain))
        else:
            scrub = scrub_stream.scrub_ndjson if ndjson else scrub_stream.scrub_text
            self.output = b"".join(scrub(scrubber, lines, complain))


def test_text_is_scrubbed_and_everything_else_of_it_stays_byte_for_byte() -> None:
    data = "\n\tto ann@example.com\r\n\nend \u200b\xe9".encode() + b"\xff\xfe\n no line end"
    assert Run(data).output == data.replace(b"ann@example.com", b"[REDACTED]")


def test_documents_are_scrubbed_value_by_value_and_unchanged_ones_stay_byte_for_byte() -> None:
    clean = b'  {"b" : 1.10, "a":12345678901234567890123, "s": "\\u00e9"}\r\n\n[1,2]\n'
    found = json.dumps({"n": CARD, "s": ["x ann@example.com"], "big": 10**30, "ann@example.com": 1}).encode()
    run = Run(clean + found, ndjson=True)
    assert run.output.startswith(clean)
    expected = {"n": "[REDACTED]", "s": ["x [REDACTED]"], "big": 10**30, "ann@example.com": 1}
    assert json.loads(run.output[len(clean) :]) == expected
    assert run.complaints == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"a": "ann@example.com"', "not JSON; left out"),
        (b'{"a": "ann@example.com", "a": ""}', "a repeated key; left out"),
        (b'{"a": NaN, "b": "ann@example.com"}', "not JSON: NaN or Infinity; left out"),
        (b'{"a": "ann@example.com\xff"}', "not UTF-8; left out"),
        (b'{"a": 1e400, "b": "ann@example.com"}', "a number is too large for a float; left out"),
        (b"[" * 100_000, "nested too deep; left out"),
        (b"[" * 300 + b'"ann@example.com"' + b"]" * 300, "cannot be scrubbed (NestingError); left out"),
    ],
)
def test_a_broken_line_is_left_out_and_named_by_its_number_without_its_content(line: bytes, problem: str) -> None:
    run = Run(b'{"a": 1}\n' + line + b'\n{"a": 2}\n', ndjson=True)
    assert run.output == b'{"a": 1}\n{"a": 2}\n'
    assert run.complaints == [(2, problem)]


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_keeps_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub_stream, "LINE_MAX_BYTES", 10)

    def pieces(data: bytes) -> Iterator[bytes]:
        stream = io.BytesIO(data)
        return iter(lambda: stream.readline(10), b"")

    complaints: list[tuple[int, str]] = []
    lines = scrub_stream.numbered(pieces(b"short\n" + b"x" * 35 + b"\nnext\n"), lambda *what: complaints.append(what))
    assert list(lines) == [(1, b"short\n"), (3, b"next\n")]
    assert complaints == [(2, "longer than 10 bytes; left out")]


def test_what_the_policy_refuses_is_left_out_of_documents_and_redacted_in_text() -> None:
    refusing = Scrubber(Policy(actions={"email": Action.REFUSE}))
    documents = Run(b'["ann@example.com"]\n["x"]\n', scrubber=refusing, ndjson=True)
    assert (documents.output, documents.complaints) == (b'["x"]\n', [(1, "refused by the policy: contact; left out")])
    text = Run(b"x\nann@example.com\n", scrubber=refusing)
    assert (text.output, text.complaints) == (b"x\n[REDACTED]\n", [(2, "refused by the policy: contact; redacted")])


def test_a_finding_of_many_lines_is_found_wherever_a_block_would_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub_stream, "BLOCK_CHARS", 200)
    monkeypatch.setattr(scrub_stream, "AHEAD_CHARS", 200)
    lines = Scrubber(Policy(custom=(custom_family("block", Category.CREDENTIAL, r"BEGIN(?:\nkey line [0-9])+\nEND"),)))
    secret = "BEGIN\n" + "".join(f"key line {n}\n" for n in range(9)) + "END"
    for before in range(0, 400, 7):
        data = ("word\n" * (before // 5) + "x" * (before % 5) + "\n" + secret + "\n" + "tail\n" * 90).encode()
        assert Run(data, scrubber=lines).output == data.replace(secret.encode(), b"[REDACTED]")


def test_a_block_ends_with_no_word_that_announces_what_stands_on_the_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub_stream, "BLOCK_CHARS", 200)
    monkeypatch.setattr(scrub_stream, "AHEAD_CHARS", 200)
    for before in range(0, 300, 7):
        data = ("word\n" * (before // 5) + "x" * (before % 5) + "\n" + "my phone:\n020 7946 0958\n" * 30).encode()
        assert Run(data).output == data.replace(b"020 7946 0958", b"[REDACTED]")


def test_text_is_worked_on_in_blocks_of_bounded_size() -> None:
    line = b"to ann@example.com and further words that make a line of some length\n"
    count = 40_000
    sizes = []

    def lines() -> Iterator[tuple[int, bytes]]:
        for number in range(1, count + 1):
            yield number, line

    for _, text in scrub_stream.blocks(SCRUBBER, lines()):
        sizes.append(len(text))
    assert sum(sizes) == count * len(line)
    assert max(sizes) <= scrub_stream.BLOCK_CHARS + scrub_stream.AHEAD_CHARS


def test_explaining_text_says_where_by_line_and_never_what() -> None:
    run = Run(b"x\nto ann@example.com, tel 555-123-4567\n", explain=True)
    assert all(row.pop("rule") for row in run.rows)
    found, finds = (
        {"category": "contact", "action": "redact"},
        [("email", "9-16 lower mark", 3, 18), ("phone", "9-16 digit mark", 24, 36)],
    )
    assert run.rows == [
        {"line": 2, "family": family, "class": shape, "start": start, "end": end, **found}
        for family, shape, start, end in finds
    ]


def test_explaining_documents_says_which_value_and_never_its_key() -> None:
    document = {"a": [1, {"ann@example.com": "to bob@example.com"}], "card": CARD, "z": None}
    run = Run(b"\n" + json.dumps(document).encode() + b"\n{\n", ndjson=True, explain=True)
    assert [(row["line"], row["value"], row["family"], row["start"], row["end"]) for row in run.rows] == [
        (2, 1, "email", 3, 18),
        (2, 2, "payment_card", 0, 16),
    ]
    assert run.complaints == [(3, "not JSON; not searched")]
    assert "example" not in json.dumps(run.rows)


@pytest.mark.parametrize(
    ("first", "ndjson"),
    [(b'{"a": 1}\n', True), (b"[1]\n", True), (b"\xef\xbb\xbf{}\n", True), (b"{not json\n", False), (b"[INFO] started\n", False),
     (b"plain\n", False), (b"12\n", False)],
)  # fmt: skip
def test_the_first_line_says_whether_it_is_ndjson(first: bytes, ndjson: bool) -> None:
    assert scrub_stream.looks_like_ndjson(first) is ndjson


def test_blocks_number_their_first_lines() -> None:
    lines = [(number, b"x" * 99 + b"\n") for number in range(1, 10_001)]
    found = list(scrub_stream.blocks(SCRUBBER, lines))
    assert found[0][0] == 1
    assert all(b[0] - a[0] == a[1].count("\n") for a, b in pairwise(found))


def test_keys_of_a_policy_count_in_json_over_several_lines_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub_stream, "BLOCK_CHARS", 2_000)
    monkeypatch.setattr(scrub_stream, "AHEAD_CHARS", 500)
    engine = Scrubber(Policy.from_mapping({"scrub_keys": ["note"]}))
    for size in (3, 300, 3_000):
        value = [{"id": number, "text": "plain"} for number in range(size)]
        document = {"a": [{"note": value, "b": 1}], "note": 5, "c": list(range(500)), "d": {"Note": 'x\n"y'}}
        run = Run(json.dumps(document, indent=2).encode(), scrubber=engine)
        gone = "[REDACTED]"
        assert json.loads(run.output) == document | {"a": [{"note": gone, "b": 1}], "note": gone, "d": {"Note": gone}}
        assert run.complaints == []
