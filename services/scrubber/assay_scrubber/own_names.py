"""Refuse credentials in producers' names that are stored unchanged. Pure.

Names of models, documents, services.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from assay_schema.validation import InvalidEvent

from .detector import Detector
from .projection import project
from .registry import FAMILIES
from .session_parts import nested

#: Families that no name matches by chance. A slug may well look like the others.
REFUSED = ("private_key", "connection_url", "jwt", "api_key", "bearer_token", "secret")
#: `error_class` of an event with a credential in a name.
CREDENTIAL_IN_NAME = "credential_in_name"
# As in `paths`: a step that ends with [] is a list whose elements follow.
_CALL_NAMES = ("server_session_id", "call_id", "agent_name", "parent_call_id")
_SINGLE: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "retrieval": ("tool_name", "embedding_model"),
        "answer": ("model",),
        "feedback": ("user_hash",),
        "tool_call": ("tool_name", "error_kind", *_CALL_NAMES),
        "server_event": _CALL_NAMES,
        "session": ("session_id", "source", "source_version", "parent_session_id", "forked_from", "model"),
    }
)
_LISTS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {"retrieval": ("retrieved_slugs", "source_ids", "retrieved_ids")}
)
_ROWS: MappingProxyType[str, tuple[tuple[str, tuple[str, ...]], ...]] = MappingProxyType(
    {
        "retrieval": (("passages", ("id", "source_id")),),
        "answer": (("contexts", ("id", "source_id")), ("citations", ("context_id",))),
    }
)
#: The producer's own documents, whose keys are names at any depth.
_DOCUMENTS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "retrieval": ("params",),
        "tool_call": ("args_summary", "result_summary"),
        "server_event": ("args_summary", "result_summary"),
        "session": ("request", "response", "intermediate_events", "metadata"),
    }
)
_DETECTOR = Detector([FAMILIES[name] for name in REFUSED])
_BY_RANK = {FAMILIES[name].rank: name for name in REFUSED}
_BETWEEN = "\n"


def credential_in(text: str) -> str:
    """Return the family of a credential in `text`, or ''."""
    found = _DETECTOR.detect(project(text), b"")
    return _BY_RANK[min(rank for _, _, rank in found)] if found else ""


# Cache of names without a credential: names repeat, so hardly an event needs a search. Cleared at once when it is full.
_passed: set[str | None] = {None}
_MOST_PASSED, _LONGEST_PASSED = 20_000, 128


def refuse_credentials(
    kind: str, payload: Mapping[str, Any], service: str, project: str, session_id: str | None = None
) -> None:
    """Raise InvalidEvent when a name of an event is or contains a credential.

    The error states which name, but not its text.
    """
    if kind == "session":  # the path of a continuation consists of keys
        payload = nested(payload)
    texts: list[str | None] = [service, project, session_id]
    texts += [payload.get(name) for name in _SINGLE.get(kind, ())]
    for name in _LISTS.get(kind, ()):
        texts += payload.get(name) or ()
    for name, fields in _ROWS.get(kind, ()):
        for row in payload.get(name) or ():
            texts += [row.get(field) for field in fields]
    for _, document in _documents(kind, payload):
        texts += _keys(document)
    if not _passed.issuperset(texts):
        envelope = {"service": service, "project": project, "session_id": session_id}
        _look(kind, payload, envelope, [text for text in texts if text not in _passed and text is not None])


def _look(kind: str, payload: Mapping[str, Any], envelope: Mapping[str, str | None], unseen: list[str]) -> None:
    if credential_in(_BETWEEN.join(unseen)):
        for field, text in (*envelope.items(), *_named(kind, payload)):
            if text and (family := credential_in(text)):
                raise InvalidEvent(
                    CREDENTIAL_IN_NAME,
                    f"{field}: holds a credential ({family}); refused, since names are stored unchanged; use another",
                )
    if len(_passed) > _MOST_PASSED:
        _passed.clear()
        _passed.add(None)
    _passed.update([text for text in unseen if len(text) <= _LONGEST_PASSED])


def _documents(kind: str, payload: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in _DOCUMENTS.get(kind, ()):
        value = payload.get(name)
        if isinstance(value, dict | list):
            yield name, value


def _keys(document: Any) -> list[str]:
    """Yield the keys of every object in a document."""
    found: list[str] = []
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            found += [key for key in value if isinstance(key, str)]
            value = value.values()
        pending += [child for child in value if isinstance(child, dict | list | tuple)]
    return found


def _named(kind: str, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of a payload, each with its field."""
    for name in _SINGLE.get(kind, ()):
        if isinstance(payload.get(name), str):
            yield f"payload.{name}", payload[name]
    for name in _LISTS.get(kind, ()):
        for place, text in enumerate(payload.get(name) or ()):
            yield f"payload.{name}.{place}", text
    for name, fields in _ROWS.get(kind, ()):
        for place, row in enumerate(payload.get(name) or ()):
            for field in fields:
                if isinstance(row.get(field), str):
                    yield f"payload.{name}.{place}.{field}", row[field]
    for name, document in _documents(kind, payload):
        for key in _keys(document):
            yield f"payload.{name}, a key", key
