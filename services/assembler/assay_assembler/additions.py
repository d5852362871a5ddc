"""Fields that a later version of the contract has. Each is one function, so that adding it is one line here."""

from typing import Any

from assay_assembler.documents import Document


def envelope_additions(*, partial: bool, user: str) -> dict[str, Any]:
    """Return additional fields of the envelope: where it came from, whether something was cut, a pseudonym."""
    del partial, user
    return {}


def retrieval_additions(ids: list[str], documents: tuple[Document, ...]) -> dict[str, Any]:
    """Return additional fields of a retrieval's payload: the hits' ids and texts as the producer sent them."""
    del ids, documents
    return {}


def params_additions(ids: list[str]) -> dict[str, Any]:
    """Return parameters of a retrieval that hold what the payload has no field for."""
    return {"document_ids": ids} if ids else {}
