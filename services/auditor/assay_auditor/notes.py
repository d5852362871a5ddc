"""Signed notes and checkpoints (c2sp.org/signed-note, c2sp.org/tlog-checkpoint), with Ed25519. Pure.

A note is a text, an empty line, and signature lines. A checkpoint is a note whose text is the log's origin, its size and its root.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_ED25519 = b"\x01"
#: The start of a signature line.
MARK = "\N{EM DASH} "
#: Most bytes of a note, and most signatures that are looked at.
NOTE_BYTES, _SIGNATURES = 1_000_000, 100


class NoteError(ValueError):
    """A note or a key is malformed, or no signature of a known key is on it. The message says which."""


def _check_name(name: str) -> str:
    if not name or any(each.isspace() or each == "+" or not each.isprintable() for each in name):
        raise NoteError(f"the name of a key or log has spaces, a plus sign, or nothing: {name!r}")
    return name


def key_id(name: str, public: bytes, kind: bytes = _ED25519) -> bytes:
    """Return the id of a key: four bytes of the hash of its name, type and public key."""
    return hashlib.sha256(name.encode() + b"\n" + kind + public).digest()[:4]


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """True if an Ed25519 signature of a message is by this public key. False for anything malformed."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def parts_of_vkey(vkey: str) -> tuple[str, bytes, bytes]:
    """Return name, type and public key of a verifier key, `NAME+ID+KEY`. Raises `NoteError`."""
    try:
        name, number, key = vkey.strip().split("+", 2)
        decoded = base64.b64decode(key, validate=True)
    except ValueError:
        raise NoteError("a verifier key looks like NAME+ID+KEY") from None
    kind, public = decoded[:1], decoded[1:]
    if number != key_id(_check_name(name), public, kind).hex():
        raise NoteError("the id of the verifier key does not match its name and key")
    return name, kind, public


@dataclass(frozen=True)
class Verifier:
    """A public key and its name."""

    name: str
    public: bytes

    @classmethod
    def parsed(cls, vkey: str) -> "Verifier":
        """Read a verifier key, `NAME+ID+KEY`. Raises `NoteError`."""
        name, kind, public = parts_of_vkey(vkey)
        if kind != _ED25519 or len(public) != 32:
            raise NoteError("a verifier key of another type than Ed25519")
        return cls(name, public)

    @property
    def id(self) -> bytes:
        """Its four bytes on a signature line."""
        return key_id(self.name, self.public)

    @property
    def vkey(self) -> str:
        """Its text, to be published."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(_ED25519 + self.public).decode()}"

    def accepts(self, text: str, signature: bytes) -> bool:
        """True if the signature of a text is by this key."""
        return is_signed(self.public, text.encode(), signature)


class Signer:
    """A private key and its name. Its representation does not show the key."""

    def __init__(self, name: str, seed: bytes) -> None:
        self.name = _check_name(name)
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = Verifier(name, self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @classmethod
    def parsed(cls, skey: str) -> "Signer":
        """Read a signer key, `PRIVATE+KEY+NAME+ID+KEY`. Raises `NoteError`, without the key."""
        parts = skey.strip().split("+", 4)
        try:
            private, word, name, number, key = parts
            decoded = base64.b64decode(key, validate=True)
        except ValueError:
            raise NoteError("a signer key looks like PRIVATE+KEY+NAME+ID+KEY") from None
        if (private, word) != ("PRIVATE", "KEY") or decoded[:1] != _ED25519 or len(decoded) != 33:
            raise NoteError("a signer key looks like PRIVATE+KEY+NAME+ID+KEY, with an Ed25519 key")
        found = cls(name, decoded[1:])
        if number != found.verifier.id.hex():
            raise NoteError("the id of the signer key does not match its name and key")
        return found

    @property
    def skey(self) -> str:
        """Its text, for a private file."""
        key = base64.b64encode(_ED25519 + self._seed).decode()
        return f"PRIVATE+KEY+{self.name}+{self.verifier.id.hex()}+{key}"

    def signed(self, text: str) -> str:
        """Return the note of a text, which ends with a newline."""
        if not text.endswith("\n"):
            raise NoteError("the text of a note ends with a newline")
        blob = base64.b64encode(self.verifier.id + self._key.sign(text.encode())).decode()
        return f"{text}\n{MARK}{self.name} {blob}\n"


def verified_text(note: str, verifiers: Sequence[Verifier]) -> str:
    """Return the text of a note that a known key signed. Raises `NoteError`.

    Signatures of unknown keys are ignored, a bad one of a known key is refused.
    """
    text, signatures = parts_of(note)
    known = {(each.name, each.id): each for each in verifiers}
    good = False
    for name, blob in signatures:
        verifier = known.get((name, blob[:4]))
        if verifier is None:
            continue
        if not verifier.accepts(text, blob[4:]):
            raise NoteError(f"a bad signature of the key {name}+{blob[:4].hex()}")
        good = True
    if not good:
        raise NoteError("no signature of a known key")
    return text


def key_names(note: str) -> list[str]:
    """Return the keys that a note names in its signatures, as NAME+ID. Raises `NoteError`.

    Does not check the signatures.
    """
    return [f"{name}+{blob[:4].hex()}" for name, blob in parts_of(note)[1]]


def parts_of(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text of a note and its signatures: name, and key id with signature. Raises `NoteError`."""
    if len(note) > NOTE_BYTES or any(each < " " and each != "\n" for each in note):
        raise NoteError("not a note: too long, or with control characters")
    text, gap, lines = note.rpartition("\n\n")
    if not gap or not lines.endswith("\n"):
        raise NoteError("not a note: no signatures after an empty line")
    found = []
    for line in lines.removesuffix("\n").split("\n")[:_SIGNATURES]:
        name, _, encoded = line.removeprefix(MARK).partition(" ")
        try:
            blob = base64.b64decode(encoded, validate=True)
        except ValueError:
            blob = b""
        if not line.startswith(MARK) or not name or len(blob) < 5:
            raise NoteError("not a note: a malformed signature line")
        found.append((name, blob))
    return text + "\n", found


@dataclass(frozen=True)
class Checkpoint:
    """The size and root of a log at one time."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @classmethod
    def verified(cls, note: str, verifiers: Sequence[Verifier], origin: str) -> "Checkpoint":
        """Read the checkpoint of a log from a signed note. Raises `NoteError`."""
        found = cls.parsed(verified_text(note, verifiers))
        if found.origin != origin:
            raise NoteError(f"a checkpoint of the log {found.origin!r}, not {origin!r}")
        return found

    @classmethod
    def parsed(cls, text: str) -> "Checkpoint":
        """Read the text of a note; extension lines are allowed. Raises `NoteError`."""
        lines = text.split("\n")
        try:
            origin, size, root = lines[0], lines[1], base64.b64decode(lines[2], validate=True)
        except (IndexError, ValueError):
            raise NoteError("not a checkpoint: origin, size and root are missing") from None
        well_formed = size.isascii() and size.isdigit() and len(size) <= 20 and str(int(size)) == size
        if not origin or not well_formed or len(root) != 32:
            raise NoteError("not a checkpoint: a malformed origin, size or root")
        return cls(origin, int(size), root)


@dataclass(frozen=True)
class Signed:
    """A checkpoint, and the note that has it."""

    checkpoint: Checkpoint
    note: str
