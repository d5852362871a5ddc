"""The judge's verdict on a session, as text."""

from assay_cli.output.terminal import printable
from assay_operations.judging.explained import detail_in_words
from assay_operations.sessions.verdicts import SessionVerdict

_MARKS = {"yes": "+", "no": "-", "not_applicable": "n/a", "not_judged": "?"}


def as_text(verdict: SessionVerdict) -> str:
    """Return the score and the items of the rubric, one a line.

    An item has its verdict, and the turn of its evidence."""
    score = verdict.metrics.get("rubric_score")
    head = verdict.status if score is None else f"{score:.0%} of its rubric"
    lines = [f"judged: {head} ({printable(verdict.model)}, {verdict.judged_at:%Y-%m-%d %H:%M} UTC)"]
    detail = detail_in_words(verdict.status, verdict.detail)
    lines += [f"  {printable(detail)}"] if detail else []
    for item in verdict.rubric:
        notes = [item["dimension"].replace("_", " ")]
        notes += [f"turn {item['turn']}"] if item["turn"] else []
        notes += ["called met without evidence"] if item["demoted"] else []
        criterion = printable(" ".join(item["criterion"].split()))
        lines.append(f"  {_MARKS[item['verdict']]:>3}  {criterion}  ({', '.join(notes)})")
    return "\n".join(lines)
