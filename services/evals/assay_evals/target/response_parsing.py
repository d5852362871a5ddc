"""Parse a target's response in any of the supported forms. Pure.

- a list of ids: `["a", "b"]`;
- a list of objects: `[{"slug": "a", "source_id": "wiki", "score": 1.5}]` (`id` does for `slug`), each perhaps with its `time` (ISO 8601, or
  seconds or milliseconds since 1970), the `actors` it concerns, and the search paths it was `found_by` (each a name, or a list of them);
- an object with such a list under `results` (or `hits`, `data`), and perhaps: `answer`; its `citations`, a list as above, each perhaps with
  the `claim` it is cited for; the passages it was made from as `contexts: [{"id": "a", "text": "..."}]`; and `latency_ms`, the target's own
  measure of its time. Without one, the time until its answer is taken.

A field of another type is treated as missing and counted; so is a key that is probably a misspelt field.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from assay_evals.dataset.model import Moment
from assay_evals.errors import TargetError
from assay_evals.target.response import ResultMetadata, TargetResponse

_LISTS = ("results", "hits", "data")
#: Fields of a whole response, and their types in words.
FIELDS = {
    "answer": "text",
    "citations": 'a list of ids, or of {"context_id", "claim"}',
    "contexts": 'a list of {"id", "text"}',
    "latency_ms": "a number of milliseconds, 0 or more",
}
#: Similarity from which on a key is a misspelt field: `Answer`, `answers`, `latency`, but not `total` or `context_id`.
_ALIKE = 0.8
#: Characters of an unusable response that `--show-errors` prints.
_SHOWN = 2_000


def parse_response(value: Any, elapsed_ms: float) -> TargetResponse:
    """Parse a target's response, in any form. Raises `TargetError`."""
    if isinstance(value, TargetResponse):
        return value
    whole: Mapping[str, Any] = value if isinstance(value, Mapping) else {"results": value}
    found = next((whole[name] for name in _LISTS if isinstance(whole.get(name), list | tuple)), None)
    misspelt = _misspelt(whole)
    if found is None:
        if not isinstance(whole.get("answer"), str):
            raise TargetError(_unusable(value, misspelt), target_message=repr(value)[:_SHOWN])
        found = []
    slugs, sources = [], []
    for each in found:
        slug, source = _hit(each)
        slugs.append(slug)
        sources.append(source)
    metadata = [_metadata(each) for each in found]
    latency, answer = whole.get("latency_ms"), whole.get("answer")
    return TargetResponse(
        slugs=slugs,
        latency_ms=elapsed_ms if latency is None or not _is_latency(latency) else float(latency),
        sources=sources,
        answer=answer if isinstance(answer, str) else None,
        citations=[(_hit(each, "citation")[0], _claim(each)) for each in _listed(whole.get("citations"))],
        contexts=[
            (_hit(each, "context")[0], each["text"]) for each in _listed(whole.get("contexts")) if _has_text(each)
        ],
        metadata=metadata if any(each is not _NOTHING for each in metadata) else (),
        unparsed_fields=Counter(
            [*(name for each in found for name in _unparsed_fields(each)), *_unparsed_whole(whole)]
        ),
        misspelt_keys=misspelt,
    )


def unparsed_in_words(unparsed: Mapping[str, int], misspelt: Mapping[tuple[str, str], int]) -> list[str]:
    """Describe what was not understood of a run's responses: fields, and keys with their meaning."""
    found = [
        f"{count:,} response(s) have an unreadable `{name}`, treated as missing: it must be {FIELDS[name]}"
        if name in FIELDS
        else f"{count:,} result(s) have an unreadable `{name}`; treated as missing"
        for name, count in unparsed.items()
    ]
    return found + [
        f"{count:,} response(s) have an unknown key `{key}`, which is ignored (did you mean {meant}?)"
        for (key, meant), count in misspelt.items()
    ]


def _unusable(value: Any, misspelt: Mapping[str, str]) -> str:
    """Describe a response without results and answer by its type, never by its content."""
    kind = "None" if value is None else type(value).__name__
    if not isinstance(value, Mapping):
        return f"the target returned {kind}: return a list of results, or an object with them under `results`"
    near = "".join(f" (did you mean {meant}?)" for meant in list(misspelt.values())[:1])
    return f"the target returned an object without a list under `results` and without text under `answer`{near}"


def _misspelt(whole: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys that are probably misspelt, by the field that they probably mean and that is missing."""
    missing = {name for name in (*FIELDS, "results") if name not in whole}
    missing -= {"results"} if whole.keys() & set(_LISTS) else set()
    keys = [key for key in whole if isinstance(key, str) and key not in FIELDS and key not in _LISTS]
    near = {key: difflib.get_close_matches(key.lower(), sorted(missing), n=1, cutoff=_ALIKE) for key in keys}
    return {key: close[0] for key, close in near.items() if close}


def _unparsed_whole(whole: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of the response that have content of another type."""
    contexts = whole.get("contexts")
    readable = {
        "answer": isinstance(whole.get("answer"), str),
        "citations": isinstance(whole.get("citations"), list | tuple),
        "contexts": isinstance(contexts, list | tuple) and all(map(_has_text, contexts)),
        "latency_ms": _is_latency(whole.get("latency_ms")),
    }
    yield from (name for name, fits in readable.items() if not fits and whole.get(name) is not None)


def _is_latency(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _listed(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else []


_NOTHING = ResultMetadata()
_MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
#: Names of search paths become names of metrics; what does not look like one is passed over.
_PATH_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")


def _metadata(value: Any) -> ResultMetadata:
    if not isinstance(value, Mapping) or not value.keys() & {"time", "actors", "found_by"}:
        return _NOTHING
    return ResultMetadata(_time(value.get("time")), _names(value.get("actors")), _path_names(value.get("found_by")))


def _unparsed_fields(value: Any) -> Iterator[str]:
    """Yield the fields of a result that have content but cannot be parsed."""
    if isinstance(value, Mapping):
        for name, read in (("time", _time), ("actors", _names), ("found_by", _path_names)):
            given = value.get(name)
            empty = given is None or (isinstance(given, str | list | tuple) and not given)
            if not empty and not read(given):
                yield name


def _path_names(value: Any) -> tuple[str, ...]:
    return tuple(name for name in _names(value) if _PATH_NAME.fullmatch(name))


def _time(value: Any) -> datetime | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        return _MOMENT.validate_python(value)
    except ValidationError:
        return None


def _names(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return tuple(each for each in listed if isinstance(each, str) and each.strip())


def _claim(value: Any) -> str | None:
    claim = value.get("claim") if isinstance(value, Mapping) else None
    return claim if isinstance(claim, str) else None


def _has_text(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("text"), str)


def _hit(value: Any, what: str = "result") -> tuple[str, str | None]:
    if _is_id(value):
        return _text(str(value)), None
    if isinstance(value, Mapping):
        slug = value.get("slug", value.get("id", value.get("context_id")))
        source = value.get("source_id")
        if _is_id(slug) and slug != "":
            slug = str(slug)
            return _text(slug), _text(source) if isinstance(source, str) else None
    raise TargetError(f"a {what} has no slug or id", target_message=repr(value)[:_SHOWN])


def _is_id(value: Any) -> bool:
    """True for a valid id: text, or a number, since databases number their documents."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _text(value: str) -> str:
    """Require text that a file can contain.

    JSON can contain a lone surrogate, which no file can: one answer's error rather than the end of a run.
    """
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise TargetError("a result's id is not text: it contains a lone surrogate") from None
    return value
