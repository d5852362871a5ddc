"""Fields that a later version of the contract has.

Each is one function, so that adding it is one line here.
"""

from typing import Any

from assay_assembler.documents import Document


def envelope_additions(*, partial: bool, user: str) -> dict[str, Any]:
    """Return additional fields of the envelope: its origin, whether something was cut, a pseudonym."""
    del partial, user
    return {}


def retrieval_additions(ids: list[str], documents: tuple[Document, ...]) -> dict[str, Any]:
    """Return additional fields of a retrieval: ids and texts of the hits as the producer sent them."""
    del ids, documents
    return {}


def params_additions(ids: list[str]) -> dict[str, Any]:
    """Return parameters of a retrieval that hold what the payload has no field for."""
    return {"document_ids": ids} if ids else {}
