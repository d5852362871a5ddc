"""`python -m tests.bench.pii.recall TOOL OUT`: how many forms of each group (`forms`) a tool finds, as JSON; in the tool's own environment.

Assay scrubs parsed JSON value by value, as services do it; every other tool is given the text.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from .forms import Form, Half, found, groups, tally
from .forms.form import removed
from .tools import TOOLS, Span, detect_secrets

#: What is asked: not the slowest, and one more whose speed does not matter here.
SEEKERS = {name: tool for name, tool in {**TOOLS, "detect_secrets": detect_secrets}.items() if name != "presidio_ner"}

#: By group: forms found, and forms, of the half that rules were written with (`seen`) and of the other (`held`).
Halves = dict[str, dict[str, Half]]


def blanked(text: str, spans: list[Span]) -> str:
    """The text without what was found."""
    for _, start, end in sorted(spans, key=lambda span: -span[1]):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def finds(tool: str) -> Callable[[Form], bool]:
    """Whether the tool finds every value of a form."""
    if tool == "assay":
        from assay_scrubber.engine import Scrubber

        scrubber = Scrubber()
        return lambda form: found(scrubber, form)
    find, _ = SEEKERS[tool]()
    return lambda form: removed(lambda text: blanked(text, find(text)), form)


if __name__ == "__main__":
    counted = tally(finds(sys.argv[1]))
    halves: Halves = {group: {"seen": counted[group, False], "held": counted[group, True]} for group in groups()}
    Path(sys.argv[2]).write_text(json.dumps(halves))
