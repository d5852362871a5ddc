"""Cache of paid replies of the judge's API: the same prompt to the same model is not paid twice.

The name of an entry is a hash of the complete request. Its content is encrypted with a key that is derived from the API key (AES-GCM, with
the name as associated data): replies quote answers that were not scrubbed. Entries that were written with another key, such as those of a
checkout or an artefact, are misses. An entry that cannot be read or written is a miss too, never an error.
"""

import contextlib
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
_NONCE = 12


class Kept(NamedTuple):
    """A reply, and its cost in nano-dollars."""

    text: str
    nano: int


class JudgeCache:
    """Encrypted entries in a folder. Counts `hits`, `misses`, and `saved` nano-dollars."""

    def __init__(self, folder: Path, key: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.hits = self.misses = self.saved = 0
        self._folder = folder
        self._name, secret = (
            hmac.digest(key.encode(), f"assay judge cache 1: {use}".encode(), "sha256") for use in ("name", "entry")
        )
        self._cipher = AESGCM(secret)

    def name_of(self, judge: str, prompt: "Prompt", most: int, repeat: int) -> str:
        """Return the name of an entry: a hash of the judge's fingerprint, the request, and the repeat."""
        asked = json.dumps([judge, prompt.system, prompt.message, prompt.schema, most, repeat], sort_keys=True)
        return hmac.digest(self._name, asked.encode(), "sha256").hex()

    def get(self, name: str) -> Kept | None:
        """Return the entry of a name, if it exists and was written with the same key."""
        from cryptography.exceptions import InvalidTag

        with contextlib.suppress(OSError, InvalidTag, ValueError, TypeError, KeyError, RecursionError):
            with open(self._path(name), "rb", opener=opener) as file:
                sealed = file.read(ENTRY_MAX_BYTES + 1)
            if len(sealed) <= ENTRY_MAX_BYTES:
                entry = json.loads(self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], name.encode()))
                return Kept(str(entry["text"]), int(entry["nano"]))
        return None

    def put(self, name: str, kept: Kept) -> None:
        """Store a reply, if that is possible."""
        nonce = secrets.token_bytes(_NONCE)
        body = self._cipher.encrypt(nonce, json.dumps(kept._asdict()).encode(), name.encode())
        path = self._path(name)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(path, nonce + body)

    def count(self, kept: Kept | None) -> None:
        """Count a hit, or a miss for None."""
        if kept is None:
            self.misses += 1
        else:
            self.hits += 1
            self.saved += kept.nano

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name


def cache_in(runs: Path, key: str) -> JudgeCache | None:
    """Return the cache in a folder of runs; None without a key to encrypt it with."""
    return JudgeCache(runs / CACHE_FOLDER, key) if key else None
