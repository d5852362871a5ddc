"""Fields for producers other than the SDK: origin, partial events, users, text ids, passages."""

import hashlib
import hmac
from typing import Any

from assay_assembler.documents import Document
from assay_assembler.fitting import body, name


def envelope_additions(*, partial: bool, user: str, user_key: bytes) -> dict[str, Any]:
    """Return the fields of the envelope for origin, dropped parts and user."""
    pseudonym = user_hash(user, user_key)
    return {"origin": "otlp", "partial": partial, **({"user_hash": pseudonym} if pseudonym else {})}


def user_hash(user: str, user_key: bytes) -> str:
    """Return the pseudonym of a user; empty without a key, because an id must not be kept as it is."""
    if not user or not user_key:
        return ""
    return hmac.new(user_key, user.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def retrieval_additions(ids: list[str], documents: tuple[Document, ...]) -> dict[str, Any]:
    """Return the fields of a retrieval that hold ids and texts of the hits as the producer sent them."""
    return {
        "retrieved_ids": [] if all(each.isascii() and each.isdecimal() for each in ids) else ids,
        "passages": [passage(document, known) for document, known in zip(documents, ids, strict=True) if document.text],
    }


def passage(document: Document, known: str) -> dict[str, Any]:
    """Return a document as a passage with its id."""
    return {
        "id": known,
        "source_id": name(document.source) or None,
        "text": body(document.text),
        "score": document.score,
    }
