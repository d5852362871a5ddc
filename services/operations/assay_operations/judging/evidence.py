"""The sentences of an answer, with the judge's verdict and the deciding passage of each. Pure."""

from collections.abc import Mapping
from typing import Any

#: The verdict of a sentence is the worst verdict of its claims.
_WORST_FIRST = ("contradicted", "not_found", "supported")


def sentences_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sentences of a stored answer: text, verdict (empty without a claim), evidence by claim."""
    from assay_judge.text import sentence_spans

    answer = row["answer"]
    contexts = [_named(("id", "source_id", "text", "score"), context) for context in row["contexts"]]
    verdicts = [_named(_VERDICT, verdict) for verdict in row["verdicts"]]
    sentences = []
    for start, end in sentence_spans(answer):
        here = [verdict for verdict in verdicts if start <= verdict["answer_from"] < end]
        worst = next((name for name in _WORST_FIRST if any(verdict["verdict"] == name for verdict in here)), "")
        claims = [_claim(verdict, contexts) for verdict in here]
        sentences.append({"text": answer[start:end], "verdict": worst, "claims": claims})
    return sentences


_VERDICT = ("verdict", "demoted", "answer_from", "answer_to", "passage", "quote_from", "quote_to")


def _claim(verdict: Mapping[str, Any], contexts: list[Mapping[str, Any]]) -> dict[str, Any]:
    place = int(verdict["passage"])
    claim = {"verdict": verdict["verdict"], "demoted": bool(verdict["demoted"])}
    if not 1 <= place <= len(contexts):
        return claim | {"passage": None, "context_id": None, "quote": None}
    context = contexts[place - 1]
    quote = context["text"][int(verdict["quote_from"]) : int(verdict["quote_to"])]
    return claim | {"passage": place, "context_id": context["id"], "quote": quote}


def _named(names: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else dict(zip(names, value, strict=True))
