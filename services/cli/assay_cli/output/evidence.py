"""Format a judged answer for people, sentence by sentence."""

from collections.abc import Mapping
from typing import Any

from assay_cli.output.terminal import printable
from assay_operations.judging.explained import detail_in_words

#: Characters shown of a sentence or a quote; the rest is counted.
SHOWN = 400
_WORDS = {"contradicted": "CONTRADICTED", "not_found": "NO SUPPORT", "supported": "supported", "": "-"}


def as_text(row: Mapping[str, Any], sentences: list[dict[str, Any]]) -> str:
    """Format a judged answer. Captured text is filtered for the terminal, and cuts are marked."""
    lines = [
        f"answer {row['event_id']}, project {printable(row['project'])}, judged by {printable(row['model'])} ({row['fingerprint']})"
    ]
    values = ", ".join(f"{name} {value:.3g}" for name, value in sorted(row["metrics"].items()))
    detail = printable(detail_in_words(row["status"], row["detail"]))
    lines.append(": ".join(filter(None, (row["status"], values, detail))))
    if failed := sorted(name for name, passed in row["checks"].items() if not passed):
        lines.append(f"failed checks: {', '.join(map(printable, failed))}")
    lines.append("")
    for sentence in sentences:
        lines.append(f"{_WORDS[sentence['verdict']]:12}  {_short(sentence['text'])}")
        lines += [f"{'':12}    {_evidence(claim)}" for claim in sentence["claims"]]
    if left_out := row["claims"] - len(row["verdicts"]):
        lines.append(
            f"\nThe evidence of {left_out} claims is not stored."
            if row["verdicts"]
            else "\nJudged before evidence was stored; to judge it again: assay judge rejudge"
        )
    return "\n".join(lines)


def _evidence(claim: Mapping[str, Any]) -> str:
    demoted = " (the judge said supported, but gave no valid evidence)" if claim["demoted"] else ""
    if claim["passage"] is None:
        return f"no passage supports it{demoted}"
    return f'passage {claim["passage"]} ({printable(claim["context_id"])}): "{_short(claim["quote"])}"{demoted}'


def _short(text: str) -> str:
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}... [{len(plain) - SHOWN} more characters]"
