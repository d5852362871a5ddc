"""`make fuzz SUITE=scrub [SECONDS=60] [SEED=n]`: search for texts that the scrubber is slow on, by climbing hills.

A candidate is a sequence of fragments, repeated: fragments are what opens the families' gates and what their rules
react to. Whoever takes longer per character than its parent survives. Prints the worst, how each grows with size,
and exits with 1 when one breaks the bound. `build/fuzz/scrub.json` keeps them; put what is new into `pii/hostile.py`.
"""

import argparse
import json
import random
import string
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from assay_scrubber.engine import Scrubber
from assay_scrubber.family import Literals
from assay_scrubber.registry import FAMILIES
from tests.bench.pii import hostile
from tests.bench.pii.measure import exponent

SIZE = 12_000
#: CPU nanoseconds a character that 50 KB in 40 ms allow.
MOST_NANOSECONDS = 800.0
STEEPEST = 1.25
KEPT = 12
_SHAPES = (
    *string.punctuation, " ", "\n", "\t", "\r\n", "  ", "a", "Z", "9", "0", "00", "+1", "12", "123", "1234", "12345678", "123456789012",
    "4111", "4111 1111 1111 1111", "123-45-6789", "555-123-4567", "1.2.3.4", "2001:db8::1", "::", "a:b", "00:1b:44:11:3a:b7",
    "DE89", "DE89370400440532013000", "eyJ", "eyJhbGciOi", "abcdefghijklmnop", "ABCD1234efgh5678", "a@b.co", "user@", "x.y.z", "http://",
    "://u:p@h/",
    "Bearer ", "Basic ", "phone ", "call ", "ssn ", "passport ", "born ", "account ", "iban ", "key=", "secret: ", "token '",
    "-----BEGIN PRIVATE KEY-----", "-----END", "%40", "%20", "\\n", "\\u0040", "\\\\", "&#64;",
    "\u200b", "\u00ad", "\u00a0", "４", "я", "中", "\U0001f600",
    "[at]", "(dot)", " at ", " dot ", "YWxpY2VAZXhhbXBsZS5jb20=", "0x", "bc1q", "1/1/1990", "Jan 1, 1990", "[REDACTED]",
)  # fmt: skip


def _fragments() -> list[str]:
    needles = [
        needle for family in FAMILIES.values() if isinstance(family.gate, Literals) for needle in family.gate.needles
    ]
    return [*_SHAPES, *hostile.UNITS, *(needle.decode("latin-1") for needle in needles)]


class Candidate(NamedTuple):
    """`parts` repeated to any size, behind what opens every gate when `opened`."""

    parts: tuple[str, ...]
    opened: bool

    def text(self, size: int) -> str:
        unit = "".join(self.parts) or " "
        return (hostile.OPEN_ALL_GATES if self.opened else "") + (unit * (size // len(unit) + 1))[:size]


def cost(scrubber: Scrubber, candidate: Candidate, size: int, rounds: int = 2) -> float:
    """CPU nanoseconds a character: the best of `rounds`, so that other load counts little."""
    text, best = candidate.text(size), float("inf")
    for _ in range(rounds):
        started = time.thread_time_ns()
        scrubber.scrub(text)
        best = min(best, time.thread_time_ns() - started)
    return best / len(text)


def mutated(rng: random.Random, parent: Candidate, fragments: Sequence[str]) -> Candidate:
    parts = list(parent.parts)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(parts) + 1)
        match rng.randrange(5):
            case 0 | 1:
                parts.insert(at, rng.choice(fragments))
            case 2 if parts:
                parts[at % len(parts)] = rng.choice(fragments)
            case 3 if len(parts) > 1:
                del parts[at % len(parts)]
            case _ if parts:
                parts[at % len(parts)] *= rng.choice([2, 3, 20])
    return Candidate(tuple(part[:400] for part in parts[:12]) or (" ",), rng.random() < 0.7)


def search(seconds: float, rng: random.Random) -> list[tuple[float, Candidate]]:
    """The slowest candidates, worst first."""
    scrubber, fragments = Scrubber(), _fragments()
    started, tried = time.monotonic(), 0
    worst = [(cost(scrubber, c, SIZE), c) for c in (Candidate((unit,), opened=True) for unit in hostile.UNITS)]
    while time.monotonic() - started < seconds:
        # Mostly from one of the worst, sometimes from nothing.
        parent = Candidate((rng.choice(fragments),), opened=True) if rng.random() < 0.3 else rng.choice(worst)[1]
        child = mutated(rng, parent, fragments)
        worst.append((cost(scrubber, child, SIZE), child))
        tried += 1
        # One of a kind: the children of one parent must not crowd out the rest.
        kinds: dict[tuple[str, ...], tuple[float, Candidate]] = {}
        for took, candidate in sorted(worst, reverse=True):
            kinds.setdefault(tuple(sorted(set(candidate.parts))[:2]), (took, candidate))
        worst = sorted(kinds.values(), reverse=True)[:KEPT]
    print(f"{tried} texts of {SIZE} characters tried in {seconds:.0f} s")
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz SUITE=scrub")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="repeat a search; by default a new one each time")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    worst = search(chosen.seconds, random.Random(seed))
    scrubber, sizes, slow, report = Scrubber(), (6_000, 24_000, 96_000), False, []
    print("ns/char at " + ", ".join(f"{size:,}" for size in sizes) + "; exponent; repeated text")
    for _, candidate in worst:
        costs = [cost(scrubber, candidate, size, 3) for size in sizes]
        slope = exponent([(size, nanoseconds * size) for size, nanoseconds in zip(sizes, costs, strict=True)])
        broken = max(costs) > MOST_NANOSECONDS or slope > STEEPEST
        slow |= broken
        print(
            f"{'  '.join(f'{ns:7.0f}' for ns in costs)}  {slope:5.2f}  {''.join(candidate.parts)!a}{'  TOO SLOW' if broken else ''}"[
                :200
            ]
        )
        report.append({"ns_per_char": costs, "exponent": slope, "parts": candidate.parts, "opened": candidate.opened})
    directory = Path("build/fuzz")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "scrub.json").write_text(json.dumps({"seed": seed, "worst": report}, indent=2) + "\n")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
