"""An answer sentence by sentence, each with the judge's verdict and the passage that decides. Pure."""

from collections.abc import Mapping
from typing import Any

#: The worst verdict of a sentence's claims is the sentence's.
_WORST_FIRST = ("contradicted", "not_found", "supported")


def sentences_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sentences of a stored answer: text, verdict (empty where no claim was found), and the evidence of each claim in them."""
    from assay_judge.text import sentence_spans

    answer, contexts = row["answer"], [_named(("id", "source_id", "text", "score"), each) for each in row["contexts"]]
    verdicts = [_named(_VERDICT, each) for each in row["verdicts"]]
    found = []
    for start, end in sentence_spans(answer):
        here = [each for each in verdicts if start <= each["answer_from"] < end]
        worst = next((name for name in _WORST_FIRST if any(each["verdict"] == name for each in here)), "")
        found.append({"text": answer[start:end], "verdict": worst, "claims": [_claim(each, contexts) for each in here]})
    return found


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
