"""`python -m tests.bench.pii.run TOOL CORPUS OUT SECONDS...`: one tool on one corpus, on one core, in CPU time.

Reads lines of JSON with `text` and `part`; writes one document: findings of the `accuracy` and `clean` parts by line
number, and nanoseconds a text of the parts whose speed is measured. Each part ends after its share of seconds, so a
slow tool has fewer texts; ratios are then taken over the texts that both sides have.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from .tools import TOOLS


def one_core() -> None:
    """Keeps this process on the last core it may run on."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run(tool: str, lines: list[dict[str, Any]], seconds: float, rounds: int) -> dict[str, Any]:
    find, scrub = TOOLS[tool]()
    for line in lines[:: max(1, len(lines) // 20)]:
        scrub(line["text"])
    findings: dict[int, list[Any]] = {}
    spent: dict[str, dict[int, int]] = {}
    for part in sorted({line["part"] for line in lines}):
        rows = [(number, line["text"]) for number, line in enumerate(lines) if line["part"] == part]
        if part == "accuracy":
            deadline = time.thread_time() + 8 * seconds
            for number, text in rows if tool != "presidio_ner" else rows[::12]:
                findings[number] = find(text)
                if time.thread_time() > deadline:
                    break
            continue
        best: dict[int, int] = {}
        deadline = time.thread_time() + seconds
        for _ in range(rounds):
            for number, text in rows:
                started = time.thread_time_ns()
                scrub(text)
                took = time.thread_time_ns() - started
                best[number] = min(took, best.get(number, took))
                if time.thread_time() > deadline:
                    break
        spent[part] = best
    return {"tool": tool, "findings": findings, "spent": spent}


def clock_cost() -> int:
    """Nanoseconds that reading the clock adds to each text: taken off by the reader."""
    costs = []
    for _ in range(2000):
        started = time.thread_time_ns()
        costs.append(time.thread_time_ns() - started)
    return sorted(costs)[len(costs) // 2]


if __name__ == "__main__":
    one_core()
    corpus, out = Path(sys.argv[2]), Path(sys.argv[3])
    document = run(sys.argv[1], [json.loads(line) for line in corpus.open()], float(sys.argv[4]), int(sys.argv[5]))
    out.write_text(json.dumps(document | {"clock": clock_cost()}))
