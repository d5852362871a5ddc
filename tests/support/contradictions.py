"""Documents with limits that differ, and a judge that compares them, for tests of contradictions."""

import json
import re
from typing import Any

_LIMIT = re.compile(r"The limit is (\d+) requests per second\.")


def limit(number: int, more: str = "") -> str:
    """Return the text of a document that states a limit."""
    return f"The limit is {number} requests per second. Ask support if you need more of them every day.{more}"


def judge(document: dict[str, Any]) -> str:
    """Judge two texts by the limits that they state, as a model would reply.

    Words of the question choose another behaviour: `biased` judges by the order, `misquote` quotes what no text says, `unsure` is less
    confident, `elsewhere` finds another scope, `earlier` another time, `superseded` gives that verdict.
    """
    question, found = document["question"], [_LIMIT.search(document[name]) for name in ("first", "second")]
    numbers = [int(each[1]) if each else None for each in found]
    differ = None not in numbers and numbers[0] != numbers[1]
    if "biased" in question and differ and numbers[0] > numbers[1]:  # type: ignore[operator]
        differ = False
    claims = [each[0] if each and differ else "" for each in found]
    if "misquote" in question:
        claims = ["The limit is none at all.", "There is no limit."]
    return json.dumps(
        {
            "first_claim": claims[0],
            "second_claim": claims[1],
            "same_subject": "yes",
            "same_time": "no" if "earlier" in question else "yes",
            "same_scope": "no" if "elsewhere" in question else "yes",
            "reason": "The limits differ." if differ else "Both can be true.",
            "verdict": "no_contradiction"
            if not differ
            else "temporal_supersession"
            if "superseded" in question
            else "contradiction",
            "severity": "high" if "urgent" in question else "low",
            "confidence": 0.69 if "unsure" in question else 0.9,
        }
    )
