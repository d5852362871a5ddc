"""Read documents of an audit log with programs that are not ours: sigstore's verifier, aics-tlog, and the reference of SD-JWT.

Runs in the environment of `make oracles`, without Assay: `test_other_programs.py` gives it documents, one a line, and reads what is wrong
with each, an empty line for one that verifies.
"""

import base64
import json
import sys
from types import SimpleNamespace
from typing import Any

Document = dict[str, Any]


def decoded(values: list[str]) -> list[bytes]:
    return [base64.b64decode(each) for each in values]


def sigstore(document: Document) -> None:
    """Verify the note's form, and the inclusion proof."""
    from sigstore._internal.merkle import verify_merkle_inclusion
    from sigstore._internal.rekor.checkpoint import LogCheckpoint, SignedNote

    note = SignedNote.from_text(document["checkpoint"])
    found = LogCheckpoint.from_text(note.note)
    proof = SimpleNamespace(
        log_index=document["leaf_index"],
        tree_size=found.log_size,
        root_hash=bytes.fromhex(found.log_hash),
        hashes=decoded(document["inclusion"]),
    )
    entry = SimpleNamespace(inclusion_proof=proof, canonicalized_body=document["leaf"].encode())
    verify_merkle_inclusion(SimpleNamespace(_inner=entry))


def aics_tlog(document: Document) -> None:
    """Verify signature, cosignature, inclusion and consistency."""
    import aics_tlog as tlog

    def opened(text: str) -> Any:
        note = tlog.parse_note(text)
        assert tlog.verify_note(note, [tlog.parse_vkey(document["vkey"])]), "the signature of the log does not verify"
        found = tlog.parse_checkpoint(note.text)
        if document.get("witness"):
            key = tlog.parse_vkey(document["witness"])
            lines = [each for each in note.signatures if (each.name, each.key_id) == (key.name, key.key_id)]
            assert lines, "no cosignature"
            for each in lines:
                good = tlog.verify_cosignature(
                    each.signature, key.name, key.public_key, found.origin, found.size, found.root
                )
                assert good, "the cosignature does not verify"
        return found

    newest = opened(document["checkpoint"])
    if document.get("leaf"):
        assert tlog.verify_leaf_inclusion(
            document["leaf"].encode(), document["leaf_index"], newest.size, decoded(document["inclusion"]), newest.root
        ), "the leaf is not included"
    if document.get("older"):
        older = opened(document["older"])
        proof = decoded(document["consistency"])
        assert tlog.verify_consistency(older.size, newest.size, older.root, newest.root, proof), "not consistent"


def sd_jwt(document: Document) -> None:
    """Put the digests of a leaf into a token, as an issuer does, and have its disclosures verified."""
    from jwcrypto.jwk import JWK
    from jwcrypto.jws import JWS
    from sd_jwt.verifier import SDJWTVerifier

    key = JWK.generate(kty="EC", crv="P-256")
    token = JWS(json.dumps({"_sd": json.loads(document["leaf"])["sd"], "_sd_alg": "sha-256"}))
    token.add_signature(key, None, json.dumps({"alg": "ES256"}))
    presented = "~".join([token.serialize(compact=True), *document["disclosures"], ""])
    found = SDJWTVerifier(presented, lambda *_: key).get_verified_payload()
    expected = dict(json.loads(base64.urlsafe_b64decode(each + "==="))[1:] for each in document["disclosures"])
    assert {name: value for name, value in found.items() if name in expected} == expected, "not disclosed"


def main() -> None:
    """Verify the documents on stdin with the program that the argument names."""
    verify = {"sigstore": sigstore, "aics-tlog": aics_tlog, "sd-jwt": sd_jwt}[sys.argv[1]]
    for line in sys.stdin:
        try:
            verify(json.loads(line))
            print()
        except Exception as error:  # noqa: BLE001 - any refusal is an answer
            print(" ".join(f"{type(error).__name__}: {error}".split()))


if __name__ == "__main__":
    main()
