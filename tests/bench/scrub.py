"""Scrubbing: texts per second and recall, beside a plain fold of six regular expressions in the same run.

CPU time of one thread, so that other load on the machine hardly counts; the two sides take turns, the best round of
each is reported. The fold is faster to write, not safer: the last rows say how much of what was planted each removes.
"""

import importlib.util
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from assay_scrubber.engine import Scrubber
from tests.bench.result import result

CORPUS = Path(__file__).parents[2] / "services" / "scrubber" / "tests" / "scrub_corpus.py"
HOSTILE_SIZE = 50_000
HOSTILE_UNITS = (
    "a.a.", "@", "eyJ", "aaaaaaaa.", "1-", "5105 ", "4111 1111 1111 1112 ", "call 5551234567, ", "+44 20 7946 0958 ",
    "1234567 a ", "1.1.1.", "%40", "\\", "://", "bearer ", "\u200b", "я", "４１１１ ",
)  # fmt: skip
OPEN_ALL_GATES = "@ :// eyJ bearer phone ssn 1234567 + 00 "

DENSE = (
    "Hi, mail {email} or call {phone}; card {payment_card}, ssn {us_ssn}, Authorization: Bearer {bearer_token}, thanks",
    "user {email} paid with {payment_card} from {phone}, tax id {us_ssn}, please close the account before Monday, ok",
    "Dear team, my number is {phone}, my address {email} and the old one {email}; my card was {payment_card} 12/26",
)


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


class Fold:
    """What one writes in an afternoon: six patterns, each over the whole text, one after the other."""

    _PATTERNS = (
        re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b"),
        re.compile(r"(?<!\d)(?:\+?\d{1,3}[\s.-]?)?(?:\(\d{3}\)\s*|\d{3}[\s.-])\d{3}[\s.-]?\d{4}(?!\d)"),
        re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)"),
        re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    )
    _BEARER = re.compile(r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{10,}=*")
    _CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")

    @staticmethod
    def _card(match: re.Match[str]) -> str:
        return "[REDACTED]" if _luhn(re.sub(r"\D", "", match.group())) else match.group()

    def scrub(self, text: str) -> str:
        for pattern in self._PATTERNS:
            text = pattern.sub("[REDACTED]", text)
        return self._CARD.sub(self._card, self._BEARER.sub("Bearer [REDACTED]", text))


def _corpus() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scrub_corpus", CORPUS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _seconds(scrub: Callable[[str], object], texts: Sequence[str]) -> float:
    started = time.thread_time_ns()
    for text in texts:
        scrub(text)
    return (time.thread_time_ns() - started) / 1e9


def _best(
    ours: Callable[[str], object], anchor: Callable[[str], object], texts: Sequence[str], rounds: int
) -> tuple[float, float]:
    pairs = [(_seconds(ours, texts), _seconds(anchor, texts)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def _dense(corpus: ModuleType, count: int) -> list[str]:
    rng = random.Random(corpus.SEED)
    makers = {name: maker for name, (maker, _) in corpus.MAKERS.items()}
    return [
        re.sub(r"\{(\w+)\}", lambda match: makers[match[1]](rng), DENSE[number % len(DENSE)]) for number in range(count)
    ]


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Rows as `result` makes them; `quick`: a tenth of the texts."""
    scrubber, fold, corpus = Scrubber(), Fold(), _corpus()
    count, rounds = (2_000, 3) if quick else (20_000, 5)
    labelled = corpus.labelled(count)
    random_words = random.Random(corpus.SEED)
    speeds = [
        ("clean prose, 160 B", [corpus.sentence(random_words, 30)[:160] for _ in range(count)], ">= 5"),
        ("clean, full of look-alikes", corpus.clean(count), ">= 1"),
        ("one to three findings", [text.text for text in labelled], ">= 1"),
        ("full of findings, 150 B", _dense(corpus, count), ">= 1"),
    ]
    rows = []
    for name, texts, target in speeds:
        ours, anchor = _best(scrubber.scrub, fold.scrub, texts, rounds)
        rows.append(result(name, len(texts) / ours, len(texts) / anchor, "texts/s", target, len(texts)))
    worst_ours = worst_anchor = 0.0
    for unit in HOSTILE_UNITS:
        text = [OPEN_ALL_GATES + (unit * HOSTILE_SIZE)[:HOSTILE_SIZE]]
        worst_ours = max(worst_ours, min(_seconds(scrubber.scrub, text) for _ in range(rounds)))
        worst_anchor = max(worst_anchor, _seconds(fold.scrub, text))
    rows.append(
        result("slowest hostile 50 KB", worst_ours * 1e3, worst_anchor * 1e3, "ms", "<= 0.1", len(HOSTILE_UNITS))
    )
    rows += _recall(scrubber, fold, labelled)
    return rows


def _recall(scrubber: Scrubber, fold: Fold, labelled: Sequence[Any]) -> list[dict[str, Any]]:
    """Share of planted values of which nothing is left in the text, by family."""
    planted: dict[str, list[int]] = {}
    for text in labelled:
        outputs = scrubber.scrub(text.text).text, fold.scrub(text.text)
        for family, start, end in text.spans:
            counts = planted.setdefault(family, [0, 0, 0])
            counts[0] += 1
            for side, output in enumerate(outputs, 1):
                counts[side] += text.text[start:end] not in output
    return [
        result(f"removed: {family}", ours / total, anchor / total, "share", ">= 1", total)
        for family, (total, ours, anchor) in sorted(planted.items())
    ]
