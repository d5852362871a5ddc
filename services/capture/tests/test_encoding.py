"""What becomes of the caller's values: one obvious JSON form, or a counted refusal. Never an exception of the caller's objects."""

import math
import random
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import RFC_4122, UUID

import numpy as np
import orjson
import pytest
from pydantic import BaseModel

from assay_capture.encoding import NotCapturedError, encoded, shard_from
from assay_schema.ids import event_ms, new_event_id
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.streams import shard_of


class Colour(Enum):
    RED = "red"


@dataclass
class Hit:
    slug: str


class Model(BaseModel):
    when: datetime


class Tensor:
    """Like an array of any numeric library."""

    def tolist(self) -> list[float]:
        return [0.5]


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("evil")

    __repr__ = __str__


class Point(NamedTuple):
    x: int
    y: int


HAS_A_FORM = {
    "text": ("plain", "plain"),
    "text of a subclass that raises": (Text("inside"), "inside"),
    "NUL and controls": ("\x00\n", "\x00\n"),
    "tuple": ((1, 2), [1, 2]),
    "named tuple": (Point(1, 2), [1, 2]),
    "set": ({1}, [1]),
    "frozen set": (frozenset({"a"}), ["a"]),
    "deque": (deque([1, 2]), [1, 2]),
    "dict keys": ({"a": 1}.keys(), ["a"]),
    "ordered dict": (OrderedDict(a=1), {"a": 1}),
    "mapping": (MappingProxyType({"a": 1}), {"a": 1}),
    "numbers as keys": ({1: "a"}, {"1": "a"}),
    "enum": (Colour.RED, "red"),
    "UUID": (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "dataclass": (Hit("a"), {"slug": "a"}),
    "pydantic model": (Model(when=datetime(2026, 1, 2, tzinfo=UTC)), {"when": "2026-01-02T00:00:00Z"}),
    "aware datetime": (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:00:00+02:00"),
    "naive datetime, read as UTC": (datetime(2026, 1, 2, 3), "2026-01-02T03:00:00Z"),  # noqa: DTZ001
    "NaN": (math.nan, None),
    "infinity": (-math.inf, None),
    "NumPy integer": (np.int64(7), 7),
    "NumPy array": (np.array([1.5, 2.5]), [1.5, 2.5]),
    "NumPy array with a stride": (np.arange(6)[::2], [0, 2, 4]),
    "other array": (Tensor(), [0.5]),
}


class EvilAttribute:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("evil")


class EvilModel(BaseModel):
    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise RuntimeError("evil")


class EvilDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("evil")


def cycle() -> list[Any]:
    loop: list[Any] = []
    loop += [loop, loop]
    return loop


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


HAS_NONE = {
    "bytes": b"\xff",
    "lone surrogate": "\ud83d",
    "lone surrogate as a key": {"\ud83d": 1},
    "integer over 64 bits": 2**64,
    "complex": 1j,
    "function": len,
    "class": Hit,
    "plain object": object(),
    "generator, which must not be used up": (i for i in range(3)),
    "exception": ValueError("secret"),
    "object whose class raises": EvilAttribute(),
    "model whose dump raises": EvilModel(),
    "object as a key": {object(): 1},
}


@pytest.mark.parametrize("name", HAS_A_FORM)
def test_a_value_with_one_obvious_json_form_takes_it(name: str) -> None:
    value, form = HAS_A_FORM[name]
    assert orjson.loads(encoded({"value": value})) == {"value": form}


@pytest.mark.parametrize("name", HAS_NONE)
def test_a_value_without_a_json_form_is_refused_by_reason_and_never_shown(name: str) -> None:
    with pytest.raises(NotCapturedError) as refusal:
        encoded({"value": HAS_NONE[name]})
    assert (str(refusal.value), refusal.value.__cause__) == ("unserialisable", None)


@pytest.mark.parametrize("build", [cycle, deep])
def test_a_value_that_contains_itself_or_never_ends_is_refused(build: Any) -> None:
    with pytest.raises(NotCapturedError, match="unserialisable"):
        encoded({"value": build()})


def test_a_dict_with_evil_methods_is_read_without_calling_them() -> None:
    assert encoded({"value": EvilDict(a=1)}) == b'{"value":{"a":1}}'


def test_an_interrupt_inside_a_value_is_the_programs_own() -> None:
    class InterruptedOnce:
        interrupted = False

        def tolist(self) -> list[int]:
            if not InterruptedOnce.interrupted:
                InterruptedOnce.interrupted = True
                raise KeyboardInterrupt
            return []

    with pytest.raises(KeyboardInterrupt):
        encoded({"value": InterruptedOnce()})


@pytest.mark.parametrize(("length", "fits"), [(ENTRY_MAX_BYTES - 12, True), (ENTRY_MAX_BYTES - 11, False)])
def test_an_entry_may_have_exactly_the_contracts_bytes(length: int, fits: bool) -> None:
    event = {"value": "x" * length}
    if fits:
        assert len(encoded(event)) == ENTRY_MAX_BYTES
    else:
        with pytest.raises(NotCapturedError, match="too_large"):
            encoded(event)


def test_later_changes_by_the_caller_change_nothing() -> None:
    slugs = ["a"]
    data = encoded({"slugs": slugs})
    slugs.append("b")
    assert data == b'{"slugs":["a"]}'


def test_an_event_goes_to_its_projects_shard_and_a_broken_one_to_the_first() -> None:
    shards = [shard_from(encoded({"project": name}), 4) for name in "abcdefgh"]
    assert shards == [shard_of(name, 4) for name in "abcdefgh"]
    assert len(set(shards)) > 1
    assert [shard_from(data, 4) for data in (b"", b"{", b"[]", b'{"project":5}')] == [0, 0, 0, 0]


def test_event_ids_are_uuid7_of_now_distinct_and_in_order_of_time() -> None:
    before = time.time_ns() // 1_000_000
    ids = [new_event_id() for _ in range(10_000)]
    after = time.time_ns() // 1_000_000
    parsed = [UUID(text) for text in ids]
    assert [str(value) for value in parsed] == ids
    assert {(value.version, value.variant) for value in parsed} == {(7, RFC_4122)}
    assert all(before <= event_ms(value) <= after for value in parsed)
    assert len(set(ids)) == len(ids)
    assert ids[::50] == sorted(ids[::50])


def test_a_program_that_seeds_pythons_random_numbers_does_not_repeat_event_ids() -> None:
    random.seed(1)
    first = new_event_id()
    random.seed(1)
    assert new_event_id()[-12:] != first[-12:]
