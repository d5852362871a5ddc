"""Texts that hold no secret and nothing personal, chosen to tempt a scrubber: none may change.

They were written by somebody who had not seen the rules, and lie in `stay.jsonl`, one JSON object a line: `group`, `text`.

    python -m tests.bench.pii.stay           # how many of each group are changed, and which
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple


class Stays(NamedTuple):
    """A text, and the kind of things that it tempts with."""

    group: str
    text: str


def texts() -> list[Stays]:
    """All of them, in the order of the file."""
    lines = Path(__file__).with_name("stay.jsonl").read_text(encoding="utf-8").splitlines()
    return [Stays(**json.loads(line)) for line in lines]


def main() -> None:
    """Print how many texts of each group are changed."""
    from assay_scrubber.engine import Scrubber

    scrubber = Scrubber()
    sizes, changed = Counter(text.group for text in texts()), Counter[str]()
    for group, text in texts():
        families = [finding.family for finding in scrubber.scrub(text).findings]
        if families:
            changed[group] += 1
            sys.stdout.write(f"changed: {group}: {text!r} {families}\n")
    for group, size in sizes.items():
        sys.stdout.write(f"{group:40} {changed[group]:3} of {size}\n")


if __name__ == "__main__":
    main()
