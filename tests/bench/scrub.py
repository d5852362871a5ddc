"""Scrubbing: speed and accuracy on held-out texts beside other tools (`pii`), and beside a plain fold of six patterns.

CPU time of one thread on one core, so that other load on the machine hardly counts. The fold is faster to write, not
safer: the last rows say how much of what was planted each removes. `build/bench/scrub.md` has every figure.
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
from assay_scrubber.registry import FAMILIES
from tests.bench.pii import hostile, report
from tests.bench.pii import measure as pii
from tests.bench.pii.accuracy import Share, by_family, wilson
from tests.bench.pii.forms import PERSONAL
from tests.bench.pii.recall import Halves
from tests.bench.result import result

CORPUS = Path(__file__).parents[2] / "services" / "scrubber" / "tests" / "scrub_corpus.py"
HOSTILE_SIZE = 50_000
# CPU microseconds, milliseconds and the exponent of size that a scrubber in the path of every event may take.
SHORT_TEXT_MICROSECONDS = 3.0
HOSTILE_MILLISECONDS = 40.0
LINEAR = 1.1
FALSE = 0.5  # findings a megabyte of clean text, of the worst family
SECRET_FORMS, PERSONAL_FORMS = 0.90, 0.85  # of forms, found
PER_VARIETY, SPEED_TEXTS, CLEAN_MEGABYTES = 300, 600, 24.0
RECALL = {
    **dict.fromkeys(
        (
            "email",
            "us_ssn",
            "payment_card",
            "iban",
            "ip_address",
            "jwt",
            "bearer_token",
            "connection_url",
            "private_key",
        ),
        0.99,
    ),
    **dict.fromkeys(("phone/e164", "phone/international", "phone/national", "phone/us"), 0.95),
}

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
    """Rows as `result` makes them; `quick`: beside the fold only, on a tenth of the texts."""
    if quick:
        return _beside_fold(2_000, 3)
    measured = pii.everything(PER_VARIETY, SPEED_TEXTS)
    clean = pii.clean(CLEAN_MEGABYTES)
    counted = pii.by_form()
    Path("build/bench/scrub.md").write_text(report.everything(measured, clean, counted))
    return [*_speed(measured), *_hostile(), *_accuracy(measured, clean), *_forms(counted), *_beside_fold(20_000, 5)]


def _speed(measured: pii.Measured) -> list[dict[str, Any]]:
    rows = []
    ours = measured.speed["assay"]
    targets = {"clean": ">= 60", "pii": ">= 50"}
    for peer in (tool for tool in measured.speed if tool != "assay"):
        for part, theirs in measured.speed[peer].items():
            same = ours[part].among(theirs)
            target = targets.get(part) if peer.startswith("presidio_") and peer != "presidio_ner" else None
            rows.append(
                result(f"{part} beside {peer}", same.texts(), theirs.texts(), "texts/s", target, len(same.nanoseconds))
            )
    rng = random.Random(0)
    short = [_corpus().sentence(rng, 30)[:160] for _ in range(5_000)]
    scrub = Scrubber().scrub
    best = min(_seconds(scrub, short) for _ in range(5)) / len(short) * 1e6
    rows.append(
        result("clean text of 160 B, beside what is allowed", best, SHORT_TEXT_MICROSECONDS, "µs", "<= 1", len(short))
    )
    return rows


def _hostile() -> list[dict[str, Any]]:
    """The slowest of the hostile texts, and how the five slowest grow up to 1 MiB."""
    scrub = Scrubber().scrub
    timed = sorted((min(_seconds(scrub, [hostile.text(u, HOSTILE_SIZE)]) for _ in range(3)), u) for u in hostile.UNITS)
    n = len(hostile.UNITS)
    slowest = timed[-1][0] * 1e3
    rows = [
        result(
            f"hostile 50 KB, {timed[-1][1]!r}, beside what is allowed", slowest, HOSTILE_MILLISECONDS, "ms", "<= 1", n
        )
    ]
    worst, unit = max(
        (min(_seconds(scrub, [hostile.varied(u, HOSTILE_SIZE)]) for _ in range(3)), u) for u in hostile.UNITS
    )
    rows.append(
        result(
            f"hostile 50 KB, numbers varied, {unit!r}, beside what is allowed",
            worst * 1e3,
            HOSTILE_MILLISECONDS,
            "ms",
            "<= 1",
            n,
        )
    )
    for peer in ("presidio_patterns", "scrubadub", "datafog"):
        seconds, unit, complete = pii.worst(peer, HOSTILE_SIZE)
        name = f"hostile 50 KB beside {peer}, {unit!r}" + ("" if complete else f" within {pii.WORST_SECONDS} s")
        rows.append(result(name, slowest, seconds * 1e3, "ms", None, n))
    slopes = []
    for _, unit in timed[-5:]:
        sizes = [1 << power for power in (16, 17, 18, 19, 20)]
        slopes.append(
            pii.exponent([(size, min(_seconds(scrub, [hostile.text(unit, size)]) for _ in range(2))) for size in sizes])
        )
    rows.append(result("exponent of size, 64 KiB to 1 MiB, the steepest", max(slopes), LINEAR, "", "<= 1", len(slopes)))
    return rows


def _accuracy(measured: pii.Measured, clean: pii.Clean) -> list[dict[str, Any]]:
    ours = measured.accuracy["assay"]
    recall = dict(ours.found) | by_family(ours.found)
    rows = []
    for name, share in sorted(recall.items()):
        low, high = wilson(share.hits, share.n)
        target = f">= {RECALL[name]}" if name in RECALL else None
        rows.append(result(f"recall {name} [{low:.3f}, {high:.3f}]", share.value, 1.0, "share", target, share.n))
    for family in FAMILIES:
        right = ours.right.get(family, Share(0, 0))
        if right.n:
            low, high = wilson(right.hits, right.n)
            rows.append(result(f"precision {family} [{low:.3f}, {high:.3f}]", right.value, 1.0, "share", None, right.n))
    megabytes = round(sum(clean.megabytes.values()))
    rows += [
        result(
            f"false in clean texts: {family}, beside what is allowed",
            clean.per_megabyte(family),
            FALSE,
            "per MB",
            "<= 1",
            megabytes,
        )
        for family in FAMILIES
    ]
    return rows


def _forms(counted: dict[str, Halves]) -> list[dict[str, Any]]:
    """Of each group the half that no rule was written with; the name says which of the other tools finds most of it."""
    rows = []
    for group, ours in counted["assay"].items():
        shares = {tool: halves[group]["held"].recall for tool, halves in counted.items() if tool != "assay"}
        best = max(shares, key=lambda tool: shares[tool])
        target = f">= {PERSONAL_FORMS if group in PERSONAL else SECRET_FORMS}"
        name = f"forms: {group} ({best} {shares[best]:.2f})"
        rows.append(result(name, ours["held"].recall, 1.0, "share", target, ours["held"].n))
    return rows


def _beside_fold(count: int, rounds: int) -> list[dict[str, Any]]:
    scrubber, fold, corpus = Scrubber(), Fold(), _corpus()
    labelled = corpus.labelled(count)
    random_words = random.Random(corpus.SEED)
    speeds = [
        (
            "clean prose, 160 B, beside a fold of six",
            [corpus.sentence(random_words, 30)[:160] for _ in range(count)],
            ">= 5",
        ),
        ("clean, full of look-alikes, beside a fold", corpus.clean(count), ">= 1"),
        ("one to three findings, beside a fold", [text.text for text in labelled], ">= 1"),
        ("full of findings, 150 B, beside a fold", _dense(corpus, count), ">= 1"),
    ]
    rows = []
    for name, texts, target in speeds:
        ours, anchor = _best(scrubber.scrub, fold.scrub, texts, rounds)
        rows.append(result(name, len(texts) / ours, len(texts) / anchor, "texts/s", target, len(texts)))
    worst_ours = worst_anchor = 0.0
    for unit in hostile.UNITS:
        text = [hostile.text(unit, HOSTILE_SIZE)]
        worst_ours = max(worst_ours, min(_seconds(scrubber.scrub, text) for _ in range(rounds)))
        worst_anchor = max(worst_anchor, _seconds(fold.scrub, text))
    rows.append(
        result(
            "slowest hostile 50 KB, beside a fold",
            worst_ours * 1e3,
            worst_anchor * 1e3,
            "ms",
            "<= 0.1",
            len(hostile.UNITS),
        )
    )
    rows += _recall(scrubber, fold, labelled)
    return rows


def _recall(scrubber: Scrubber, fold: Fold, labelled: Sequence[Any]) -> list[dict[str, Any]]:
    """Share of planted values of which nothing is left in the text, by family that the fold knows too."""
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
        if anchor  # the fold has no pattern for the others
    ]
