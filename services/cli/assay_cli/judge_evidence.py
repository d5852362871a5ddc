"""`assay judge show`: an answer sentence by sentence, each with the judge's verdict and the passage that decides. Pure."""

from collections.abc import Mapping
from typing import Any

from assay_cli.terminal import printable

#: Characters of a sentence or a quote that are shown; what is cut is counted.
SHOWN = 400
#: The worst verdict of a sentence's claims is the sentence's.
_WORST_FIRST = ("contradicted", "not_found", "supported")
_WORDS = {"contradicted": "CONTRADICTED", "not_found": "NO SUPPORT", "supported": "supported", "": "-"}


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


def as_text(row: Mapping[str, Any], sentences: list[dict[str, Any]]) -> str:
    """For people. Captured text is filtered for the terminal, and what is cut is marked."""
    lines = [
        f"answer {row['event_id']}, project {printable(row['project'])}, judged by {printable(row['model'])} ({row['fingerprint']})"
    ]
    values = ", ".join(f"{name} {value:.3g}" for name, value in sorted(row["metrics"].items()))
    lines.append(
        f"{row['status']}{': ' if values else ''}{values}{': ' if row['detail'] else ''}{printable(row['detail'])}"
    )
    if failed := sorted(name for name, passed in row["checks"].items() if not passed):
        lines.append(f"failed checks: {', '.join(map(printable, failed))}")
    lines.append("")
    for sentence in sentences:
        lines.append(f"{_WORDS[sentence['verdict']]:12}  {_short(sentence['text'])}")
        lines += [f"{'':12}    {_evidence(claim)}" for claim in sentence["claims"]]
    if left_out := row["claims"] - len(row["verdicts"]):
        lines.append(
            f"\nThe places of {left_out} claims are not stored."
            if row["verdicts"]
            else "\nJudged before evidence was stored; assay judge rejudge judges again."
        )
    return "\n".join(lines)


def _evidence(claim: Mapping[str, Any]) -> str:
    demoted = " (called supported, which this does not show)" if claim["demoted"] else ""
    if claim["passage"] is None:
        return f"no passage says so{demoted}"
    return f'passage {claim["passage"]} ({printable(claim["context_id"])}): "{_short(claim["quote"])}"{demoted}'


def _short(text: str) -> str:
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}... [{len(plain) - SHOWN} more characters]"


def _named(names: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else dict(zip(names, value, strict=True))
