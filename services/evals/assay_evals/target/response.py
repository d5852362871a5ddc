"""A target's response: documents in order, with their metadata, and an answer. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assay_evals.dataset.model import Document, document_id


@dataclass(frozen=True)
class ResultMetadata:
    """Metadata of a result beyond its name: its time, its actors, and the search paths that found it."""

    time: datetime | None = None
    actors: tuple[str, ...] = ()
    found_by: tuple[str, ...] = ()

    def __or__(self, other: "ResultMetadata") -> "ResultMetadata":
        """Combine two occurrences of one document: the first known time, and all actors and paths."""
        actors, found_by = dict.fromkeys(self.actors + other.actors), dict.fromkeys(self.found_by + other.found_by)
        return ResultMetadata(self.time or other.time, tuple(actors), tuple(found_by))


@dataclass(frozen=True)
class TargetResponse:
    """A target's response: documents in order, and the latency in milliseconds.

    `sources[i]` is the source of `slugs[i]`, or None. `metadata[i]` is the metadata of `slugs[i]`; empty if the target
    returned none.

    `unparsed_fields` counts results by the field that could not be parsed, such as a `time` of "yesterday"; a field of
    the whole response, such as an `answer` that is not text, counts once. `misspelt_keys` are keys of the response that
    are probably misspelt, by what they probably mean.

    `citations` are those of an answer, as (id, cited claim or None). `contexts` are the passages behind the answer, as
    (id, text); an answer can only be judged with them.
    """

    slugs: list[str]
    latency_ms: float
    sources: Sequence[str | None] = ()
    answer: str | None = None
    citations: Sequence[tuple[str, str | None]] = ()
    contexts: Sequence[tuple[str, str]] = ()
    metadata: Sequence[ResultMetadata] = ()
    unparsed_fields: Mapping[str, int] = field(default_factory=dict)
    misspelt_keys: Mapping[str, str] = field(default_factory=dict)

    def documents(self, with_source: bool) -> list[Document]:
        """Return distinct documents in order, with their sources if requested."""
        sources = self.sources if with_source and self.sources else [None] * len(self.slugs)
        return list(dict.fromkeys(zip(sources, self.slugs, strict=True)))

    def named_as(self, ids: Collection[str]) -> list[str]:
        """Return the results' names in a dataset with these `ids`: `source::slug` if in `ids`, else the slug.

        A result that is none of them includes its source if an id seems to have one. A slug may contain `::` itself.
        """
        if not any("::" in each for each in ids):
            return self.slugs
        sources = self.sources or [None] * len(self.slugs)
        named = []
        for slug, source in zip(self.slugs, sources, strict=True):
            whole = document_id(slug, source)
            named.append(slug if whole not in ids and slug in ids else whole)
        return named

    def hits(self, ids: Collection[str]) -> dict[str, ResultMetadata]:
        """Return distinct documents in order, named as in `ids`, with the metadata of all their occurrences."""
        by_name: dict[str, ResultMetadata] = {}
        for name, hit in zip(self.named_as(ids), self.metadata or [ResultMetadata()] * len(self.slugs), strict=True):
            by_name[name] = by_name[name] | hit if name in by_name else hit
        return by_name
