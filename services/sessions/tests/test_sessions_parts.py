"""Parts of a session: each is small, the order is kept, and joining restores the document byte for byte."""

import random
import unicodedata
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_schema.ids import event_ms
from assay_sessions.document import document
from assay_sessions.parts import CONTINUES, PART_MAX, PIECE_MAX, PartsError, join, part_event_id, shape_digest, split
from assay_sessions.record import Call, Json, Message, Transcript
from assay_sessions.text_cut import natural_cut

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


def session(*messages: Message) -> Json:
    return document(Transcript("ses_1", "test", MOMENT, MOMENT, messages, title="Orders"))


def restored(made: Json, limit: int = PART_MAX) -> list[Json]:
    """Split, check each part as it would travel, join, compare; return the parts."""
    written = [orjson.dumps(part) for part in split(made, limit)]
    assert max(map(len, written)) <= limit
    parts = [orjson.loads(one) for one in written]
    assert orjson.dumps(join(parts)) == orjson.dumps(made)
    assert [part for part in parts if "metadata" in part] == parts[:1]
    return parts


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.builds(
    lambda piece, times: piece * times,
    st.sampled_from(["x", "é\n", "日本 ", "\x00", "e\u0301", "👩‍👩‍👧", '"\\']),
    st.integers(0, 4000),
)
KEYS = st.sampled_from(["continues", "text", "keys", "items", "path", ""]) | st.text(max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=40,
)
CALLS = st.builds(Call, name=TEXTS, args=st.dictionaries(KEYS, VALUES, max_size=5), output=TEXTS)
MESSAGES = st.builds(
    Message, role=st.sampled_from(["user", "model"]), text=TEXTS, calls=st.lists(CALLS, max_size=3).map(tuple)
)


@given(messages=st.lists(MESSAGES, max_size=6), limit=st.sampled_from([8 * 1024, 20_000, PART_MAX]))
def test_any_session_is_restored(messages: list[Message], limit: int) -> None:
    restored(session(*messages), limit)


ITEMS = st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=5)


@given(contents=ITEMS, candidates=ITEMS, events=ITEMS)
def test_items_of_any_shape_are_restored(contents: list[Json], candidates: list[Json], events: list[Json]) -> None:
    made: Json = {
        "session_id": "ses_1",
        "request": {"contents": contents},
        "response": {"candidates": candidates},
        "intermediate_events": events,
        "metadata": {},
    }
    restored(made, 8 * 1024)


def test_a_session_of_20_mib_with_2000_calls_is_restored() -> None:
    chance = random.Random(7)  # noqa: S311
    calls = tuple(
        Call("bash", {"command": f"cat {number}"}, chance.choice(["ü \n", "line\n", "x"]) * chance.randrange(6000))
        for number in range(1999)
    )
    large = Call("read", {"path": "log"}, "Zeile für Zeile\n" * 700_000)
    made = session(Message("user", "Read all."), Message("model", "", (*calls, large)), Message("model", "Done."))
    assert len(orjson.dumps(made)) > 20 * 1024 * 1024
    parts = restored(made)
    assert len(parts) < 1.5 * len(orjson.dumps(made)) / PART_MAX


def test_a_small_session_is_one_part_that_equals_the_document() -> None:
    made = session(Message("user", "Hello"), Message("model", "Hi"))
    assert split(made) == [made]


def test_a_session_without_messages_is_restored() -> None:
    assert restored(session()) == [session()]


def test_a_long_text_continues_behind_its_item() -> None:
    text = "A line of text.\n" * 20_000
    (first, *others) = (item for part in split(session(Message("user", text))) for item in part["request"]["contents"])
    assert first["role"] == "user"
    assert all(set(other) == {CONTINUES, "text"} and other[CONTINUES] == ["parts", 0, "text"] for other in others)
    pieces = [first["parts"][0]["text"], *(other["text"] for other in others)]
    assert "".join(pieces) == text
    assert max(len(piece.encode()) for piece in pieces) <= PIECE_MAX
    assert all(piece.endswith("\n") for piece in pieces)


@pytest.mark.parametrize(
    "args",
    [
        {"content": "x" * 1024 * 1024},
        {"content": "\x00" * 1024 * 1024},
        {"edits": [{"old": "a" * 100_000, "new": "b" * 100_000}] * 20},
        {f"key_{number}": "value " * 20 for number in range(20_000)},
        {"files": [f"src/{number}.py" for number in range(100_000)]},
        {"continues": ["args"], "text": "y" * 500_000, "keys": {}, "items": []},
        {"a": {"b": {"c": [[["z" * 300_000] * 3] * 2, {}, []]}}},
        {"k" * 100_000: "long key"},
    ],
)
def test_arguments_of_any_size_are_restored(args: Json) -> None:
    parts = restored(session(Message("user", "Go"), Message("model", "", (Call("tool", args, "out"),))))
    assert len(parts) > (0 if "long key" in args.values() else 1)


def test_arguments_a_thousand_levels_deep_are_kept_as_text_below_the_40th() -> None:
    deep: Any = "end"
    for _ in range(1000):
        deep = {"in": [deep]}
    (event,) = restored(session(Message("model", "", (Call("tool", {"deep": deep}),))))[0]["intermediate_events"]
    assert '{"in":["end"]}' in orjson.dumps(event).decode().replace('\\"', '"')


def test_values_that_json_cannot_have_are_made_portable() -> None:
    args = {"half": "\ud83d!", "pair": "\ud83d\ude00", "large": 10**30, "nan": float("nan"), "key\udc00": 1}
    made = session(Message("user", "cut \ud83d"), Message("model", "", (Call("tool", args),)))
    assert restored(made)[0]["intermediate_events"][0]["function_call"]["args"] == {
        "half": "\ufffd!",
        "pair": "😀",
        "large": str(10**30),
        "nan": None,
        "key\ufffd": 1,
    }
    assert made["request"]["contents"][0]["parts"][0]["text"] == "cut \ufffd"


def test_a_continuation_of_a_value_that_the_scrubber_replaced_is_dropped() -> None:
    call = Call("query", {"filters": {"name": "n" * 200_000}, "sql": "s" * 200_000})
    parts = split(session(Message("model", "", (call,))))
    parts[0]["intermediate_events"][0]["function_call"]["args"]["filters"] = "<value>"
    assert join(parts)["intermediate_events"][0]["function_call"]["args"] == {
        "filters": "<value>",
        "sql": "s" * 200_000,
    }


def test_the_caller_chooses_where_a_text_is_cut() -> None:
    seen: list[int] = []

    def before_secret(text: str, most: int) -> int:
        seen.append(len(text) - most)
        at = text.rfind("SECRET", 0, most + 6)
        return at if 0 < at < most < at + 6 else most

    text = "SECRET" * 60_000
    pieces = [
        item.get("text") or item["parts"][0]["text"]
        for part in split(session(Message("user", text)), cut=before_secret)
        for item in part["request"]["contents"]
    ]
    assert "".join(pieces) == text
    assert all(piece.startswith("SECRET") and piece.endswith("SECRET") for piece in pieces)
    assert max(seen) > 6  # sees what follows


@pytest.mark.parametrize("answer", [0, -5, 10**9])
def test_a_cut_out_of_range_is_moved_into_it(answer: int) -> None:
    made = session(Message("user", "x" * 3000))
    written = [orjson.dumps(part) for part in split(made, 2048, lambda _text, _most: answer)]
    assert orjson.dumps(join(map(orjson.loads, written))) == orjson.dumps(made)


@pytest.mark.parametrize(
    ("text", "most", "pieces"),
    [
        ("one. two three\n\nfour\nfive six", 20, ("one. two three\n\n", "four\nfive six")),
        ("one two three four\nfive six", 22, ("one two three four\n", "five six")),
        ("one two three four five", 16, ("one two three ", "four five")),
        ("onetwothreefour", 8, ("onetwoth", "reefour")),
        ("aaaaaaae\u0301b", 8, ("aaaaaaa", "e\u0301b")),
        ("aaaa👩\u200d👩b", 6, ("aaaa", "👩\u200d👩b")),
        ("aaaaaa👍🏽b", 7, ("aaaaaa", "👍🏽b")),
        ("aaaaaa\r\nb", 7, ("aaaaaa", "\r\nb")),
        ("short", 10, ("short", "")),
    ],
)
def test_a_text_is_cut_at_a_blank_line_else_a_line_else_a_word_else_between_characters(
    text: str, most: int, pieces: tuple[str, str]
) -> None:
    at = natural_cut(text, most)
    assert (text[:at], text[at:]) == pieces


@given(text=st.text(st.sampled_from("ab \n\u0301\u200d👩🏽\r"), min_size=2, max_size=80), most=st.integers(1, 79))
def test_a_cut_is_in_range_and_not_before_a_mark(text: str, most: int) -> None:
    at = natural_cut(text, most)
    assert 1 <= at <= min(most, len(text))
    run = len(text[:at]) - len(text[:at].rstrip("\u0301\u200d👩🏽"))
    if at < len(text) and 1 < run < 30 and at > run:
        assert not unicodedata.combining(text[at])


def test_a_document_whose_other_fields_exceed_the_limit_is_refused() -> None:
    made = session() | {"metadata": {"note": "x" * 4000}}
    with pytest.raises(PartsError, match=r"take 41.. bytes, and a part has 4096"):
        split(made, 4096)


def test_the_event_id_of_a_part_depends_on_its_revision_and_has_the_time_of_the_last_change() -> None:
    revision = shape_digest(session(Message("user", "Hello")))
    other = shape_digest(session(Message("user", "Hello!")))
    ids = {
        part_event_id(project, name, of, part, 1_700_000_000_123)
        for project in ("a", "b")
        for name in ("s", "t")
        for of in (revision, other)
        for part in (0, 1)
    }
    assert len(ids) == 16
    assert part_event_id("a", "s", revision, 0, 1_700_000_000_123) in ids
    assert {event_ms(UUID(one)) for one in ids} == {1_700_000_000_123}
    assert {(UUID(one).version, UUID(one).variant) for one in ids} == {(7, "specified in RFC 4122")}


def test_the_digest_changes_with_any_size_and_never_with_the_text_alone() -> None:
    made = session(
        Message("user", "Hello"), Message("model", "", (Call("read", {"path": "a"}, "text"),)), Message("model", "Hi")
    )
    same = session(
        Message("user", "World"), Message("model", "", (Call("edit", {"path": "b"}, "next"),)), Message("model", "Ho")
    )
    assert shape_digest(same) == shape_digest(made)
    for other in (
        session(Message("user", "Hello!")), session(Message("user", "Hello")), made | {"title": "A longer title"},
    ):  # fmt: skip
        assert shape_digest(other) != shape_digest(made)
