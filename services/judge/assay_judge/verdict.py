"""The verdict of a judge on an answer, and the metrics computed from it. Pure.

A judge's reply is as untrusted as the passages it read: it must match the schema, refer only to existing passages, and
give every claim one verdict. `evidence` checks it against the texts.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from assay_schema.limits import TEXT_MAX_BYTES
from assay_schema.scores import Metric

Relevancy = Literal["yes", "partial", "no"]
Support = Literal["supported", "contradicted", "not_found"]
CLAIMS_MAX = 10_000

Text = Annotated[str, StringConstraints(max_length=TEXT_MAX_BYTES)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class ReplyError(ValueError):
    """A reply that is not a verdict.

    `kind` is a short name, safe to record; neither contains captured text.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


class Strict(BaseModel):
    """A part of a reply: no conversions, no unknown fields, and no captured text in errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class Claim(Strict):
    """A claim of the answer.

    `cited_ok[i]`: True if `citations[i]` supports it alone or is needed for that.
    """

    id: Id
    text: Text
    citations: Annotated[list[Id], Field(max_length=100)]
    verdict: Support
    evidence_quote: Text
    cited_ok: Annotated[list[bool], Field(max_length=100)]

    @model_validator(mode="after")
    def _one_verdict_for_each_citation(self) -> "Claim":
        if len(self.citations) != len(self.cited_ok):
            raise ValueError("cited_ok must have one value for each citation")
        return self


class Verdict(Strict):
    """The complete reply of a judge."""

    claims: Annotated[list[Claim], Field(max_length=CLAIMS_MAX)]
    relevancy: Relevancy

    @model_validator(mode="after")
    def _ids_are_distinct(self) -> "Verdict":
        if len({claim.id for claim in self.claims}) != len(self.claims):
            raise ValueError("two claims have the same id")
        return self


#: The JSON Schema that a model must follow: flat, every field required, no bounds (bounds that the API does not enforce
#: are checked above).
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["claims", "relevancy"],
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "text", "citations", "evidence_quote", "verdict", "cited_ok"],
                "properties": {
                    "id": {"type": "string"},
                    "text": {"type": "string"},
                    "citations": {"type": "array", "items": {"type": "string"}},
                    "evidence_quote": {"type": "string"},
                    "verdict": {"type": "string", "enum": ["supported", "contradicted", "not_found"]},
                    "cited_ok": {"type": "array", "items": {"type": "boolean"}},
                },
            },
        },
        "relevancy": {"type": "string", "enum": ["yes", "partial", "no"]},
    },
}


def parse(text: str, passages: dict[str, str]) -> Verdict:
    """Parse a reply's text as a verdict on these passages (id to text). Raises `ReplyError`."""
    try:
        verdict = Verdict.model_validate(json.loads(text))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(part if isinstance(part, str) and part in _FIELDS else "*" for part in problem["loc"])
        raise ReplyError("ReplyMisfit", f"{where or 'reply'}: {problem['type']}") from None
    except (ValueError, RecursionError):
        raise ReplyError("ReplyNotJson", "the reply is not JSON") from None
    for claim in verdict.claims:
        if not set(claim.citations) <= passages.keys():
            raise ReplyError("ReplyMisfit", "claims.citations: refers to a passage that does not exist")
    return verdict


_FIELDS = frozenset((*Verdict.model_fields, *Claim.model_fields))


_RELEVANCY = {"yes": 1.0, "partial": 0.5, "no": 0.0}


def metrics_of(verdict: Verdict) -> dict[Metric, float]:
    """Compute the metrics of a verdict with at least one claim, each in [0, 1].

    Citations as ALCE defines them (Gao et al. 2023), by claim: recall is the share of claims that their citations
    support together. Precision is the share of citations, of all claims, that support a supported claim alone or are
    needed for it. A claim without a citation counts against recall, and an answer without any citations has precision
    0.
    """
    claims = verdict.claims
    supported = [claim for claim in claims if claim.verdict == "supported"]
    faithfulness = len(supported) / len(claims)
    cited = sum(len(claim.citations) for claim in claims)
    good = sum(sum(claim.cited_ok) for claim in supported)
    return {
        Metric.FAITHFULNESS: faithfulness,
        Metric.HALLUCINATION_RATE: (len(claims) - len(supported)) / len(claims),
        Metric.CITATION_PRECISION: good / cited if cited else 0.0,
        Metric.CITATION_RECALL: sum(any(claim.cited_ok) for claim in supported) / len(claims),
        Metric.ANSWER_RELEVANCY: _RELEVANCY[verdict.relevancy],
    }
