"""A body is inflated within its limit, and refused as soon as it is over it."""

import asyncio
import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_gateway.body import STEP_BYTES, Collector
from assay_gateway.refusal import RefusedError
from assay_gateway.turns import Turns

LIMIT = 3 * STEP_BYTES
GZIP, DEFLATE = gzip.compress, zlib.compress


def collect(encoding: str, *chunks: bytes, limit: int = LIMIT) -> tuple[bytes, int]:
    """Return the body, and the most bytes that were kept."""
    collector = Collector(encoding, limit, Turns())

    async def run() -> int:
        return sum([len(part) for chunk in chunks async for part in collector.parts(chunk)])

    kept = asyncio.run(run())
    return collector.whole(), kept


def code_of(encoding: str, *chunks: bytes, limit: int = LIMIT) -> tuple[int, str]:
    with pytest.raises(RefusedError) as refused:
        collect(encoding, *chunks, limit=limit)
    return refused.value.status, refused.value.code


@given(st.binary(max_size=5_000), st.integers(1, 700), st.sampled_from(["gzip", "GZIP", "deflate", "identity", " "]))
def test_a_body_comes_out_as_it_was_whatever_its_chunks(body: bytes, size: int, encoding: str) -> None:
    encoding = "identity" if encoding == " " else encoding
    wire = {"gzip": GZIP, "deflate": DEFLATE}.get(encoding.lower(), bytes)(body)
    chunks = [wire[place : place + size] for place in range(0, len(wire), size)]
    assert collect(encoding, *chunks) == (body, len(body))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_stopped_at_the_limit(encoding: str) -> None:
    bomb = {"gzip": GZIP, "deflate": DEFLATE}[encoding](bytes(200 * STEP_BYTES))
    assert len(bomb) < LIMIT
    assert code_of(encoding, bomb) == (413, "too_large")


def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert collect("identity", b"x" * 100, limit=100)[1] == 100
    assert collect("gzip", GZIP(b"x" * 100), limit=100)[1] == 100
    assert code_of("identity", b"x" * 60, b"x" * 41, limit=100) == (413, "too_large")
    assert code_of("gzip", GZIP(b"x" * 101), limit=100) == (413, "too_large")


@pytest.mark.parametrize(
    ("encoding", "chunks", "code"),
    [
        ("br", (b"x",), "unsupported_encoding"),
        ("gzip, gzip", (b"x",), "unsupported_encoding"),
        ("gzip", (b"not gzip",), "invalid_encoding"),
        ("gzip", (DEFLATE(b"x"),), "invalid_encoding"),
        ("gzip", (GZIP(b"x")[:-1],), "invalid_encoding"),
        ("gzip", (GZIP(b"x") + b"more",), "invalid_encoding"),
        ("gzip", (GZIP(b"x"), b"more"), "invalid_encoding"),
        ("gzip", (GZIP(b"x")[:-8] + b"\0" * 8,), "invalid_encoding"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_refused(encoding: str, chunks: tuple[bytes, ...], code: str) -> None:
    assert code_of(encoding, *chunks)[1] == code


@pytest.mark.parametrize("more", [b"x", GZIP(b"more"), bytes(1_000)], ids=["byte", "member", "zeros"])
@pytest.mark.parametrize("size", [10, STEP_BYTES - 1, STEP_BYTES, STEP_BYTES + 1, 2 * STEP_BYTES + 5])
def test_what_comes_after_the_data_is_refused_however_many_steps_the_data_takes(size: int, more: bytes) -> None:
    whole = GZIP(bytes(size))
    assert code_of("gzip", whole + more) == code_of("gzip", whole, more) == (400, "invalid_encoding")
