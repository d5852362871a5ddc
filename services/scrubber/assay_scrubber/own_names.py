"""Names that a producer gives (of models, documents, services) and that are stored as they are: none may hold a credential. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from assay_schema.validation import InvalidEvent

from .detector import Detector
from .projection import project
from .registry import FAMILIES

#: What no name can be by chance. The other families find what a slug may well look like.
REFUSED = ("private_key", "connection_url", "jwt", "api_key")
#: `error_class` of an event with a credential in a name.
CREDENTIAL_IN_NAME = "credential_in_name"
# As in `paths`: a step that ends with [] is a list whose elements follow.
_SINGLE: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {"retrieval": ("tool_name", "embedding_model"), "answer": ("model",), "feedback": ("user_hash",)}
)
_LISTS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType({"retrieval": ("retrieved_slugs", "source_ids")})
_ROWS: MappingProxyType[str, tuple[tuple[str, tuple[str, ...]], ...]] = MappingProxyType(
    {"answer": (("contexts", ("id", "source_id")), ("citations", ("context_id",)))}
)
_DETECTOR = Detector([FAMILIES[name] for name in REFUSED])
_BY_RANK = {FAMILIES[name].rank: name for name in REFUSED}
_BETWEEN = "\n"


def credential_in(text: str) -> str:
    """The family of a credential in `text`, or ''."""
    found = _DETECTOR.detect(project(text), b"")
    return _BY_RANK[min(rank for _, _, rank in found)] if found else ""


_of_few = lru_cache(maxsize=1024)(credential_in)


def refuse_credentials(kind: str, payload: Mapping[str, Any], envelope: Iterable[tuple[str, str]]) -> None:
    """Raises InvalidEvent where one of the names of an event is or holds a credential; it says which, and not what.

    `envelope`: fields outside of the payload, and what stands there.
    """
    for field, text in envelope:
        _refuse(field, _of_few(text))
    for name in _SINGLE.get(kind, ()):
        value = payload.get(name)
        if isinstance(value, str):
            _refuse(f"payload.{name}", _of_few(value))
    rows = list(_listed(kind, payload))
    # One look at all of them, since hardly ever is there anything.
    if rows and credential_in(_BETWEEN.join([text for _, text in rows])):
        for field, text in rows:
            _refuse(field, credential_in(text))


def _listed(kind: str, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _LISTS.get(kind, ()):
        for place, text in enumerate(payload.get(name) or ()):
            if isinstance(text, str):
                yield f"payload.{name}.{place}", text
    for name, fields in _ROWS.get(kind, ()):
        for place, row in enumerate(payload.get(name) or ()):
            for field in fields:
                if isinstance(row, Mapping) and isinstance(row.get(field), str):
                    yield f"payload.{name}.{place}.{field}", row[field]


def _refuse(field: str, family: str) -> None:
    if family:
        raise InvalidEvent(
            CREDENTIAL_IN_NAME, f"{field}: holds a credential ({family}); it is stored as it is, so use a name"
        )
