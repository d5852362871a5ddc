# ruff: noqa: S311, SIM905  # a seeded generator of test data; lists of words read better as text
"""What holds for every text: idempotence, sound spans, nothing of a planted secret left, clean text untouched."""

import base64
import json
import random
import re
import urllib.parse
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_scrubber.changes import Changes
from assay_scrubber.custom import custom_family
from assay_scrubber.digit_runs import Known
from assay_scrubber.engine import Scrubber, merge
from assay_scrubber.policy import Action, Policy
from assay_scrubber.projection import project, unfold
from assay_scrubber.registry import FAMILIES
from assay_scrubber.taxonomy import Category

SCRUBBER = Scrubber()

# Pieces that rules react to, so that random concatenations reach their corners.
FRAGMENTS = st.sampled_from(
    "@ . .. - -- ( ) / + :// : ; , [ ] 1 12 123 555 4567 4111 1111 4111111111111111 123-45-6789 555-123-4567 +44 00 011 "
    "(555) phone tel call fax ssn social bearer Bearer Authorization: eyJ eyJhbGciOi eyJhbGciOiJIUzI1NiJ9 abc123DEF456 "
    "example.com ann ann@example.com http https postgres u:p@h ?password= %40 %20 \\n \\u0040 \\\\ &#64; &amp; [REDACTED] "
    "password= password: key= api_key token secret= basic sk- ghp_ AKIAIOSFODNN7EXAMPLE GB82 DE89370400440532013000 1.2.3.4 "
    "203.0.113.7 2001:db8::1 :: 00:1A:2B:3C:4D:5E 0x 12345678Z AB123456C 529.982.247-25 born dob passport account routing cpf "
    "-----BEGIN -----END private key [at] (at) dot YW5uQGV4YW1wbGUuY29t "
    "e\u0301 \u200b \u00ad \u00a0 \u2011 \uff0b \uff11 \u0665 я 中 \U0001f600 $ _ 2024-01-15 1714558953".split()
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.one_of(FRAGMENTS, st.sampled_from(["", " ", "\n", "a", "7"])), max_size=24).map("".join),
    st.lists(FRAGMENTS, max_size=16).map(" ".join),
)
# Letters, spaces and line ends that announce nothing.
CLEAN = st.lists(st.sampled_from("lorem ipsum dolor sit amet elit sed do\n".split(" ")), max_size=40).map(" ".join)


@pytest.mark.slow
@given(TEXTS)
@settings(max_examples=1500)
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    once = SCRUBBER.scrub(text)
    again = SCRUBBER.scrub(once.text)
    assert again.text == once.text
    assert again.findings == []


@pytest.mark.slow
@given(TEXTS)
@settings(max_examples=800)
def test_findings_are_in_order_apart_and_name_exactly_what_was_replaced(text: str) -> None:
    result = SCRUBBER.scrub(text)
    position, rebuilt = 0, ""
    for finding in result.findings:
        assert position <= finding.start < finding.end <= len(text)
        assert isinstance(finding.category, Category)
        rebuilt += text[position : finding.start] + "[REDACTED]"
        position = finding.end
    assert rebuilt + text[position:] == result.text


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(0, 9)), max_size=12))
def test_merging_covers_the_same_positions_without_overlap(rows: list[tuple[int, int, int]]) -> None:
    spans = [(start, start + size, rank) for start, size, rank in rows]
    merged = merge(list(spans))
    assert {p for a, b, _ in merged for p in range(a, b)} == {p for a, b, _ in spans for p in range(a, b)}
    assert all(left[1] <= right[0] for left, right in pairwise(merged))
    for start, end, rank in merged:
        assert rank == min(r for a, b, r in spans if start <= a and b <= end)


@given(TEXTS, CLEAN, CLEAN)
@settings(max_examples=500)
def test_clean_text_around_a_text_changes_nothing_in_it(text: str, before: str, after: str) -> None:
    alone = SCRUBBER.scrub(text).text
    assert SCRUBBER.scrub(f"{before} ;\n{text}\n; {after}").text == f"{before} ;\n{alone}\n; {after}"


@given(CLEAN)
def test_clean_text_comes_back_as_the_same_object(text: str) -> None:
    result = SCRUBBER.scrub(text)
    assert result.text is text
    assert result.findings == []


@given(TEXTS, st.sampled_from([b"", b"customer phone ", b"ssn ", b"pesel "]), st.integers(1, 40))
@settings(max_examples=400)
def test_what_is_remembered_of_runs_of_digits_changes_no_finding(text: str, hint: bytes, times: int) -> None:
    repeated, detect = project(text * times + "1" + text), SCRUBBER._detect
    fresh = detect(repeated, hint)
    known: Known = {}
    assert detect(repeated, hint, known) == fresh
    assert detect(repeated, hint, known) == fresh
    altered = repeated.replace(b"e", b"o")
    assert detect(altered, hint, known) == detect(altered, hint)


@pytest.mark.slow
@given(TEXTS, st.sampled_from([b"", b"customer phone ", b"ssn ", b"pesel "]))
@settings(max_examples=800)
def test_a_search_of_what_was_replaced_finds_all_that_a_search_of_the_whole_finds(text: str, hint: bytes) -> None:
    raw, detect = project(text), SCRUBBER._detect
    found = merge(detect(raw, hint))
    replaced, starts, ends, position = b"", [], [], 0
    for start, end, _ in found:
        replaced += raw[position:start]
        starts.append(len(replaced))
        replaced += b"[REDACTED]"
        ends.append(len(replaced))
        position = end
    replaced += raw[position:]
    assert merge(detect(replaced, hint, None, Changes(starts, ends))) == merge(detect(replaced, hint))


@pytest.mark.slow
@given(TEXTS, st.sampled_from([b"", b"customer phone ", b"ssn ", b"pesel "]))
@settings(max_examples=800)
def test_all_that_a_reader_sees_is_found_though_only_what_was_decoded_is_searched_again(text: str, hint: bytes) -> None:
    raw, detect = project(text), SCRUBBER._detect
    unfolded = unfold(raw)
    if unfolded is not None:
        found = merge(detect(raw, hint))
        for span in detect(unfolded.seen, hint):
            start, end = unfolded.origin(span[0], span[1])
            assert any(a <= start and end <= b for a, b, _ in found)


@pytest.mark.parametrize("between", ["", " ".join(["far"] * 200)])
@pytest.mark.parametrize("sign", ["%3A", "\\u003d", "&gt;", ":"])
def test_a_mark_that_only_a_reader_sees_makes_a_secret_of_what_stands_anywhere(sign: str, between: str) -> None:
    text = f"the credential is 8fK2mQ9xLw4Zt7Bn {between} {sign}"
    assert "8fK2mQ9xLw4Zt7Bn" not in SCRUBBER.scrub(text).text


@pytest.mark.parametrize("between", ["", " ".join(["far"] * 200)])
@pytest.mark.parametrize(
    "policy", [Policy(actions={"email": Action.HASH}, hash_key=b"k" * 32), Policy(replacement="<gone: 1>")]
)
def test_marks_of_a_replacement_leave_nothing_to_be_found_again(policy: Policy, between: str) -> None:
    scrubber = Scrubber(policy)
    once = scrubber.scrub(f"the credential is 8fK2mQ9xLw4Zt7Bn {between} ann@example.com")
    assert scrubber.scrub(once.text).text == once.text


@pytest.mark.parametrize("unit", ["0044 20 7946 0958 ", "+91 93249 16777"])
def test_a_row_of_numbers_that_each_replacement_shows_the_next_of_is_removed_and_not_refused(unit: str) -> None:
    once = SCRUBBER.scrub(f"reach us: {unit * 40}\nuntil five")
    assert re.search(r"[0-9]{4}", once.text) is None
    assert once.text.endswith("\nuntil five")
    assert SCRUBBER.scrub(once.text).findings == []


@pytest.mark.parametrize("action", [Action.LABEL, Action.HASH])
def test_a_label_announces_no_more_than_any_other_replacement(action: Action) -> None:
    text = "phone 5551234567, " + ", ".join(str(5551230000 + number) for number in range(60))
    plain, named = SCRUBBER.scrub(text), Scrubber(Policy(actions={"phone": action}, hash_key=b"k" * 32))
    once = named.scrub(text)
    assert once.findings[:3] == plain.findings[:3]
    assert len(once.findings) < 10
    assert named.scrub(once.text).text == once.text


def test_a_digit_in_a_label_makes_no_secret_of_a_word_far_away() -> None:
    family = custom_family("desk2", Category.ONLINE_IDENTIFIER, "DESK-[A-Z]{4}")
    scrubber = Scrubber(Policy(custom=(family,), actions={"desk2": Action.LABEL}))
    once = scrubber.scrub(f"api_key: QwErTyUiOpAsDfGhJkLzXcVb {'far ' * 200} DESK-ABCD")
    assert scrubber.scrub(once.text).text == once.text


RENDERINGS = {
    "plain": lambda s: f"see {s} there",
    "alone": str,
    "quoted": lambda s: f'"{s}"',
    "assignment": lambda s: f"value='{s}';",
    "html": lambda s: f"<td>{s}</td>",
    "markdown": lambda s: f"**{s}** and `{s}`",
    "csv": lambda s: f"a,{s},b",
    "lines": lambda s: f"a\n{s}\r\nb",
    "tabs": lambda s: f"a\t{s}\tb",
    "parentheses": lambda s: f"(see {s})",
    "sentence end": lambda s: f"It was {s}. Then nothing.",
    "chinese": lambda s: f"请看{s}。",
    "json": lambda s: json.dumps({"a": [{"b": f"x {s} y"}]}),
    "json in json": lambda s: json.dumps({"a": json.dumps({"b": f"x\n{s}\ny"})}),
    "json three deep": lambda s: json.dumps(json.dumps(json.dumps({"b": f"\t{s}\n"}))),
    "url encoded": lambda s: "q=" + urllib.parse.quote(f" {s} ", safe=""),
    "all escaped": lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    "full width": lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s),
    "zero width": "\u200b".join,
    "soft hyphens": lambda s: s[:3] + "\u00ad" + s[3:-2] + "\u00ad" + s[-2:],
    "no-break spaces": lambda s: f"x\u00a0{s.replace(' ', chr(0xA0))}\u202fy",
    "non-breaking hyphens": lambda s: f"x {s.replace('-', chr(0x2011))} y",
}
# Some are what they are only after their word.
WORD = {
    "bearer_token": "Authorization: Bearer {}",
    "secret": "password: {}",
    "passport": "passport {}",
    "driver_licence": "driving licence {}",
    "bank_account": "account number {}",
    "date_of_birth": "born {}",
}


def _pieces(secret: str) -> list[str]:
    """Runs of letters or digits that would give the secret away."""
    return [piece for piece in re.findall(r"[A-Za-z0-9]{4,}", secret) if piece.lower() not in {"http", "https"}]


@pytest.mark.parametrize("rendering", sorted(RENDERINGS))
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_of_a_planted_secret_survives_any_rendering(
    family: str, rendering: str, scrub_corpus: ModuleType
) -> None:
    rng = random.Random(f"{family}/{rendering}")
    maker = scrub_corpus.MAKERS[family][0]
    for _ in range(12):
        secret = maker(rng)
        text = RENDERINGS[rendering](WORD.get(family, "{}").format(secret))
        output = SCRUBBER.scrub(text).text
        readable = urllib.parse.unquote(output).replace("\u200b", "").replace("\u00ad", "").translate(_NARROW)
        readable = re.sub(r"\\+u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), readable)
        assert [piece for piece in _pieces(secret) if piece in readable] == [], (text, output)
        assert SCRUBBER.scrub(output).text == output


@pytest.mark.parametrize("mark", ["\n", "\t", '"', "\\", "/", "\u2028"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_document_that_is_scrubbed_as_text_stays_a_document(family: str, mark: str, scrub_corpus: ModuleType) -> None:
    rng = random.Random(f"{family}/{mark}")
    for first in FAMILIES:
        values = [WORD.get(name, "{}").format(scrub_corpus.MAKERS[name][0](rng)) for name in (first, family)]
        document = {"note": mark.join(values), "rest": 1}
        for depth in range(2):
            written = json.dumps({"inner": json.dumps(document)} if depth else document)
            kept = json.loads(SCRUBBER.scrub(written).text)
            assert (json.loads(kept["inner"]) if depth else kept).keys() == document.keys(), written


@pytest.mark.parametrize("read", [str, urllib.parse.quote, lambda text: json.dumps({"a": text})])
@pytest.mark.parametrize(
    "where", ["{}", "https://api.example/cb/{}/end", "/{}/{}/", "?state={}&x=1", '{{"cursor": "{}"}}']
)
def test_what_base64_holds_is_found_as_it_is_read_and_in_paths(where: str, read: Any) -> None:
    held = base64.urlsafe_b64encode(read("to ann.lopez@example.com today").encode()).decode().rstrip("=")
    text = where.format(held, held)
    assert SCRUBBER.scrub(text).text == text.replace(held, "[REDACTED]")


_NARROW = {code + 0xFEE0: code for code in range(0x21, 0x7F)}


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
                    max_leaves=12))  # fmt: skip
@settings(max_examples=300)
def test_scrubbing_json_keeps_its_shape_and_keys_and_is_idempotent(value: Any) -> None:
    before = json.dumps(value)
    once = SCRUBBER.scrub_json(value)
    assert json.dumps(value) == before
    assert _shape(once.value) == _shape(value)
    assert SCRUBBER.scrub_json(once.value).value == once.value
    assert (once.counts == {}) == (once.value == value)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list) else None
