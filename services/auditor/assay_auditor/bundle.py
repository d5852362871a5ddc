"""A proof that a row is in the log, which verifies without Assay and without its store. Pure."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from assay_auditor.disclosures import digest_of
from assay_auditor.merkle import is_included, leaf_hash
from assay_auditor.notes import NoteError, Verifier, key_names
from assay_auditor.rotation import KeyChain, Rotation

FORM = "assay-audit-proof-1"
#: Most changes of the key that are read.
ROTATIONS = 1_000


def bundle_of(
    leaf: bytes,
    index: int,
    proof: Sequence[bytes],
    note: str,
    vkey: str,
    disclosures: Sequence[str] = (),
    rotations: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the bundle of a leaf: data, proof, signed checkpoint, disclosures, changes of the key."""
    return {
        "form": FORM,
        "leaf": leaf.decode(),
        "leaf_index": index,
        "inclusion": [base64.b64encode(each).decode() for each in proof],
        "checkpoint": note,
        "vkey": vkey,
        "disclosures": list(disclosures),
        "rotations": list(rotations),
    }


def problem_of(bundle: Mapping[str, Any], verifier: Verifier, known: Sequence[str] = ()) -> str:
    """Return why a bundle proves nothing; '' if it proves that its leaf is in the log.

    `verifier`: a key that the reader trusts. The key in the bundle is not used. `known`: statements of key rotations that the reader has,
    in addition to those in the bundle: a bundle that was made before a rotation has none. Never raises for a malformed bundle.
    """
    try:
        leaf, index, note = bundle["leaf"].encode(), bundle["leaf_index"], bundle["checkpoint"]
        proof = [base64.b64decode(each, validate=True) for each in bundle["inclusion"]]
        digests = [digest_of(each) for each in bundle["disclosures"]]
        rotations = bundle.get("rotations", [])
        if not isinstance(rotations, list) or not all(isinstance(each, str) for each in rotations):
            return "the bundle is malformed"
        if bundle["form"] != FORM or type(index) is not int or not isinstance(note, str):
            return "not a proof of Assay's audit log"
        named = set(_document(leaf)["sd"])
    except (KeyError, TypeError, AttributeError, ValueError):
        return "the bundle is malformed"
    try:
        keys = _keys(verifier, [*known, *rotations])
    except NoteError as error:
        return f"key rotation: {error}"
    try:
        checkpoint = keys.verified(note, verifier.name)
    except NoteError as error:
        return f"checkpoint: {_unknown_key(note, keys, verifier) or error}"
    if not is_included(leaf_hash(leaf), index, checkpoint.size, proof, checkpoint.root):
        return "the leaf is not in the tree of the checkpoint"
    if not set(digests) <= named:
        return "a disclosure is not one of this leaf"
    return ""


def _keys(verifier: Verifier, statements: Sequence[str]) -> KeyChain:
    """Return the keys that statements connect with that of the reader.

    Raises `NoteError` for a statement that both of its keys did not sign, and for two that contradict each other: a thief of a key can
    sign one that replaces it by another.
    """
    if len(statements) > ROTATIONS:
        raise NoteError(f"more than {ROTATIONS:,} statements")
    for each in statements:
        Rotation.parsed(each)
    keys = KeyChain([verifier], statements)
    if keys.problems:
        raise NoteError(keys.problems[0])
    return keys


def _unknown_key(note: str, keys: KeyChain, verifier: Verifier) -> str:
    """Return which keys to pass, if none of a checkpoint is known; else ''."""
    try:
        names = key_names(note)
    except NoteError:
        return ""
    if set(names) & {f"{each.name}+{each.id.hex()}" for each in keys.verifiers}:
        return ""
    return (
        f"it is signed by {' and '.join(names)}, and not by {verifier.name}+{verifier.id.hex()} or a key that the given statements of "
        "rotations connect with it: pass the signer's public key with --vkey, or the statements with --rotations, as assay audit key "
        "--rotations prints them"
    )


def _document(leaf: bytes) -> dict[str, Any]:
    found = orjson.loads(leaf)
    if not isinstance(found, dict):
        raise TypeError("not a document")
    return found
