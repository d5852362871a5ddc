"""The figures of a run as Markdown: by variety and tool, by tool, and by kind of clean text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .accuracy import Share, by_family
from .measure import Clean, Measured
from .recall import Halves

_TITLES = {
    "assay": "Assay",
    "presidio_comparable": "Presidio, comparable patterns",
    "presidio_patterns": "Presidio, all patterns",
    "presidio_ner": "Presidio, with NER",
    "scrubadub": "scrubadub",
    "datafog": "datafog",
    "detect_secrets": "detect-secrets",
}


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(value) for value in line) + " |" for line in lines) + "\n"


def _found(share: Share | None) -> str:
    return "-" if share is None or not share.n else f"{share.value:.3f}"


def recall(measured: Measured) -> str:
    """Found, by variety; for Assay with its 95 % interval and the share of which nothing is left."""
    peers = ["presidio_patterns", "presidio_ner", "scrubadub", "datafog"]
    ours = measured.accuracy["assay"]
    rows = [
        [
            variety,
            share.n,
            share,
            _found(ours.removed[variety]),
            *(_found(measured.accuracy[tool].found.get(variety)) for tool in peers),
        ]
        for variety, share in ours.found.items()
    ]
    return _table(["planted", "n", "Assay found [95 %]", "Assay removed", *(_TITLES[tool] for tool in peers)], rows)


def precision(measured: Measured) -> str:
    """Share of findings, in texts with one planted value, that overlap it."""
    rows = [
        [_TITLES[tool], name, share.n, share]
        for tool, accuracy in measured.accuracy.items()
        for name, share in sorted(accuracy.right.items(), key=lambda item: str(item[0]))
    ]
    return _table(["tool", "finding", "n", "right [95 %]"], rows)


def speed(measured: Measured) -> str:
    rows = [
        [
            _TITLES[tool],
            part,
            len(s.nanoseconds),
            f"{s.texts():,.0f}",
            f"{s.megabytes():.2f}",
            f"{s.quantile(0.5) / 1e3:,.1f}",
            f"{s.quantile(0.99) / 1e6:.2f}",
        ]
        for tool, parts in measured.speed.items()
        for part, s in parts.items()
    ]
    return _table(["tool", "texts", "n", "texts/s", "MB/s", "p50 µs", "p99 ms"], rows)


def mistaken(clean: Clean) -> str:
    """Findings in clean texts: all, and those that are false."""
    families = sorted({family for family, _ in clean.hits})
    rows = [
        [family, kind, f"{clean.megabytes[kind]:.2f}", clean.hits[family, kind], clean.false[family, kind]]
        for family in families
        for kind in clean.megabytes
        if clean.hits[family, kind]
    ]
    return _table(["family", "kind", "MB", "found", "false"], rows)


def forms(counted: Mapping[str, Halves]) -> str:
    """Forms found, by group: of Assay the half that rules were written with and the other, of all others both together."""
    others = [tool for tool in counted if tool != "assay"]
    rows = []
    for group, ours in counted["assay"].items():
        both = [[sum(pair) for pair in zip(*counted[tool][group].values(), strict=True)] for tool in others]
        mine = [f"{hits} / {n}" for hits, n in (ours["seen"], ours["held"])]
        rows.append([group, *mine, *(f"{hits} / {n}" for hits, n in both)])
    return _table(["form", "Assay, seen", "Assay, held", *(_TITLES[tool] for tool in others)], rows)


def everything(measured: Measured, clean: Clean, counted: Mapping[str, Halves]) -> str:
    parts = {
        "Forms": forms(counted),
        "Speed": speed(measured),
        "Recall": recall(measured),
        "Precision": precision(measured),
        "Clean texts": mistaken(clean),
    }
    return "\n".join(f"## {title}\n\n{table}" for title, table in parts.items())


def families(measured: Measured) -> dict[str, Share]:
    return by_family(measured.accuracy["assay"].found)
