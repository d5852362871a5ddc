"""Replies of the judge's API that were paid for once: the same model asked the same gives them again, for nothing.

An entry is named by a hash of all that was asked, and sealed with keys that come from the API's key. So an entry of somebody else (a
checkout's, an artefact's) is no entry, and nobody without the key reads what it says: replies quote answers that were not scrubbed. What
cannot be read or written is a miss, never an error.
"""

import contextlib
import hashlib
import hmac
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay_runtime.private import opener, write_whole

if TYPE_CHECKING:
    from assay_judge.api import Prompt

CACHE_FOLDER = ".judge-cache"
#: Largest entry that is read, in bytes.
ENTRY_MAX_BYTES = 8 * 1024 * 1024
_NONCE, _SEAL = 16, 32


class Kept(NamedTuple):
    """A reply, and what it cost in nano-dollars."""

    text: str
    nano: int


class JudgeCache:
    """Entries in a folder, for who has the key. `hits`, `misses`, and `saved` nano-dollars are counted."""

    def __init__(self, folder: Path, key: str) -> None:
        self.hits = self.misses = self.saved = 0
        self._folder = folder
        self._name, self._pad, self._seal = (
            hmac.digest(key.encode(), f"assay judge cache 1: {use}".encode(), "sha256")
            for use in ("name", "pad", "seal")
        )

    def name_of(self, judge: str, prompt: "Prompt", most: int, repeat: int) -> str:
        """What an entry is called: by the judge's fingerprint, all that is sent, and which of several tries it is."""
        asked = json.dumps([judge, prompt.system, prompt.message, prompt.schema, most, repeat], sort_keys=True)
        return hmac.digest(self._name, asked.encode(), "sha256").hex()

    def get(self, name: str) -> Kept | None:
        """An entry of that name, if there is one and it is ours."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            with open(self._path(name), "rb", opener=opener) as file:
                sealed = file.read(ENTRY_MAX_BYTES + 1)
            nonce, body, seal = sealed[:_NONCE], sealed[_NONCE:-_SEAL], sealed[-_SEAL:]
            if len(sealed) <= ENTRY_MAX_BYTES and hmac.compare_digest(seal, self._sealed(name, nonce, body)):
                entry = json.loads(self._padded(nonce, body))
                return Kept(str(entry["text"]), int(entry["nano"]))
        return None

    def put(self, name: str, kept: Kept) -> None:
        """Keep a reply, if it can be."""
        nonce = secrets.token_bytes(_NONCE)
        body = self._padded(nonce, json.dumps(kept._asdict()).encode())
        path = self._path(name)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(path, nonce + body + self._sealed(name, nonce, body))

    def count(self, kept: Kept | None) -> None:
        """A reply was taken from here, or was not here."""
        if kept is None:
            self.misses += 1
        else:
            self.hits += 1
            self.saved += kept.nano

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _sealed(self, name: str, nonce: bytes, body: bytes) -> bytes:
        return hmac.digest(self._seal, name.encode() + nonce + body, "sha256")

    def _padded(self, nonce: bytes, data: bytes) -> bytes:
        """Data hidden under a pad that HMAC makes of a nonce and a counter, or what was hidden under it."""
        blocks = -(-len(data) // hashlib.sha256().digest_size)
        pad = b"".join(hmac.digest(self._pad, nonce + place.to_bytes(8, "big"), "sha256") for place in range(blocks))
        return bytes(one ^ other for one, other in zip(data, pad, strict=False))


def cache_in(runs: Path, key: str) -> JudgeCache | None:
    """The cache beside the runs. Without a key there is nothing to seal it with, and so none."""
    return JudgeCache(runs / CACHE_FOLDER, key) if key else None
