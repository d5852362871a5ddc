"""One run of everything on the held-out corpus: writes it, gives it to every tool in turn, and reads what they found."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from typing import NamedTuple

from .accuracy import Accuracy, Share, judge
from .forms import Half
from .real import genuine, texts
from .recall import SEEKERS, Halves
from .seed import seeded
from .tools import TOOLS

PEERS = Path(".venv-peers/bin/python")
DIRECTORY = Path("build/bench/scrub")
#: CPU seconds for each part of the corpus and each tool; a tool that is slower reads the first of the texts.
SECONDS = 15
ROUNDS = 2
WORST_SECONDS = 25


class Speed(NamedTuple):
    """Of the texts that both tools of a comparison have read; nanoseconds a text."""

    nanoseconds: Mapping[int, float]
    sizes: Mapping[int, int]

    def texts(self) -> float:
        return len(self.nanoseconds) / sum(self.nanoseconds.values()) * 1e9

    def megabytes(self) -> float:
        return sum(self.sizes[n] for n in self.nanoseconds) / sum(self.nanoseconds.values()) * 1e3

    def quantile(self, share: float) -> float:
        ordered = sorted(self.nanoseconds.values())
        return ordered[int(share * (len(ordered) - 1))]

    def among(self, other: "Speed") -> "Speed":
        return Speed({n: took for n, took in self.nanoseconds.items() if n in other.nanoseconds}, self.sizes)


class Measured(NamedTuple):
    speed: dict[str, dict[str, Speed]]  # by tool, by part of the corpus
    accuracy: dict[str, Accuracy]  # by tool


def interpreter(tool: str) -> str:
    return sys.executable if tool == "assay" else str(PEERS)


def _module(tool: str, module: str, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    command = [interpreter(tool), "-m", f"tests.bench.pii.{module}", *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=timeout)  # our own


def everything(per_variety: int, count: int) -> Measured:
    """`per_variety` planted values of each variety, `count` texts of each part whose speed is measured."""
    if not PEERS.exists():
        raise SystemExit("the tools to compare with are not installed; run: make peers")
    corpus = DIRECTORY / "corpus.ndjson"
    _module("peers", "corpus", str(per_variety), str(count), str(corpus))
    lines = [json.loads(line) for line in corpus.open()]
    sizes = {number: len(line["text"].encode()) for number, line in enumerate(lines)}
    speed: dict[str, dict[str, Speed]] = {}
    accuracy: dict[str, Accuracy] = {}
    for tool in TOOLS:
        print(f"  {tool} ...", file=sys.stderr, flush=True)
        out = DIRECTORY / f"{tool}.json"
        _module(tool, "run", tool, str(corpus), str(out), str(SECONDS), str(ROUNDS))
        document = json.loads(out.read_text())
        findings = {int(number): [tuple(span) for span in spans] for number, spans in document["findings"].items()}
        accuracy[tool] = judge(tool, lines, findings)
        speed[tool] = {
            part: Speed({int(n): max(1, took - document["clock"]) for n, took in spent.items()}, sizes)
            for part, spent in document["spent"].items()
        }
    return Measured(speed, accuracy)


def by_form() -> dict[str, Halves]:
    """By tool: how many forms of each group it finds."""
    counted = {}
    for tool in SEEKERS:
        print(f"  forms, {tool} ...", file=sys.stderr, flush=True)
        out = DIRECTORY / f"forms_{tool}.json"
        _module(tool, "recall", tool, str(out))
        read = json.loads(out.read_text())
        counted[tool] = {group: {name: Half(*half) for name, half in halves.items()} for group, halves in read.items()}
    return counted


def worst(tool: str, size: int) -> tuple[float, str, bool]:
    """Seconds of the slowest hostile text, its unit, and whether all of them were done in time."""
    command = [interpreter(tool), "-m", "tests.bench.pii.worst", tool, str(size)]
    complete = True
    try:
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=WORST_SECONDS).stdout
    except subprocess.TimeoutExpired as error:
        output, complete = error.stdout or b"", False
    took = [json.loads(line) for line in output.splitlines()]
    seconds, unit = max(((seconds, unit) for unit, seconds in took), default=(0.0, ""))
    return (
        (seconds, unit, True)
        if complete
        else (max(seconds, WORST_SECONDS - sum(s for _, s in took)), "not finished", False)
    )


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Least squares slope of log seconds over log size: 1 is linear."""
    xs, ys = [log(size) for size, _ in points], [log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


class Clean(NamedTuple):
    """What was found in clean texts of real kinds, by (family, kind)."""

    megabytes: dict[str, float]
    hits: Counter[tuple[str, str]]
    false: Counter[tuple[str, str]]

    def per_megabyte(self, family: str) -> float:
        """False findings, over all kinds."""
        return sum(n for (name, _), n in self.false.items() if name == family) / sum(self.megabytes.values())


def clean(megabytes: float) -> Clean:
    find, _ = TOOLS["assay"]()
    size, hits, false = Counter[str](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for kind, text in texts(seeded("real"), megabytes):
        size[kind] += len(text.encode())
        for family, start, end in find(text):
            hits[family, kind] += 1
            false[family, kind] += not genuine(family, text, start, end)
    return Clean({kind: n / 1e6 for kind, n in size.items()}, hits, false)


def cell(share: Share | None) -> str:
    return str(share) if share is not None else "-"
