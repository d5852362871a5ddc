"""Compressed bodies: every frame is read, a missing end is an error, and memory stays bounded."""

import gzip
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from assay_store.compression import PIECE, Encoder, decoder, negotiate
from assay_store.errors import StoreError

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "zstd": zstd.compress,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


def _decode(encoding: str, parts: list[bytes]) -> bytes:
    reader = decoder(encoding)
    data = b"".join(piece for part in parts for piece in reader.feed(part))
    reader.finish()
    return data


@pytest.mark.parametrize("encoding", ENCODERS)
@given(frames=st.lists(st.binary(min_size=1, max_size=2000), min_size=1, max_size=5), step=st.integers(1, 500))
def test_all_frames_of_a_body_are_read_however_it_is_cut(encoding: str, frames: list[bytes], step: int) -> None:
    body = b"".join(ENCODERS[encoding](frame) for frame in frames)
    parts = [body[start : start + step] for start in range(0, len(body), step)]
    assert _decode(encoding, parts) == b"".join(frames)


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_body_that_ends_inside_a_frame_is_an_error(encoding: str) -> None:
    body = ENCODERS[encoding](bytes(range(256)) * 100)
    with pytest.raises(StoreError) as caught:
        _decode(encoding, [body[:-3]])
    assert caught.value.code == 117


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_small_body_never_becomes_a_large_allocation(encoding: str) -> None:
    size = 20 * PIECE
    reader = decoder(encoding)
    total = 0
    for piece in reader.feed(ENCODERS[encoding](bytes(size))):
        assert len(piece) <= PIECE
        total += len(piece)
    reader.finish()
    assert total == size


@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip", "deflate"])
def test_bytes_of_another_encoding_are_an_error(encoding: str) -> None:
    with pytest.raises(StoreError):
        _decode(encoding, [b"this is not compressed at all, not even a little bit of it"])


def test_an_unknown_encoding_is_named_with_the_known_ones() -> None:
    with pytest.raises(StoreError) as caught:
        decoder("br")
    assert "lz4, zstd, gzip or deflate" in caught.value.text


@pytest.mark.parametrize(
    ("accept", "enabled", "chosen"),
    [
        ("gzip, lz4, zstd", True, "lz4"),
        ("zstd, gzip", True, "zstd"),
        ("gzip;q=0.8", True, "gzip"),
        ("lz4;q=0, gzip", True, "gzip"),
        ("br", True, ""),
        ("lz4", False, ""),
    ],
)
def test_a_response_is_compressed_only_for_a_client_that_asks_twice(accept: str, enabled: bool, chosen: str) -> None:
    assert negotiate(accept, enabled) == chosen


@pytest.mark.parametrize("encoding", ["", *ENCODERS])
def test_what_is_encoded_can_be_decoded(encoding: str) -> None:
    parts = [b"one", b"", b"two" * 10_000]
    encoder = Encoder(encoding)
    assert _decode(encoding, [encoder.encode(part) for part in parts] + [encoder.finish()]) == b"".join(parts)
