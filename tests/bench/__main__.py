"""`make bench [SUITE=...]`: measure, print a table, write `build/bench/<suite>.json`."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

#: Every suite is a module here with `measure() -> list of rows` (see `result`).
SUITES = (
    "capture", "scrub", "insert", "store", "rollup", "durability", "scale", "metrics", "statistics", "judge", "calibration", "drift",
    "pipeline", "memory", "agents", "gateway", "console", "audit", "contradictions",
)  # fmt: skip

#: Parts of a suite that can be run alone.
PARTS = ("drift_amounts",)


def figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def show(suite: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=suite, title_justify="left")
    for column in ("what", "ours", "anchor", "unit", "ratio", "target", "met", "n"):
        table.add_column(column, justify="left" if column in {"what", "unit"} else "right")
    for row in rows:
        met = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[row["met"]]
        figures = [
            figure(row["ours"]),
            figure(row["anchor"]),
            row["unit"],
            figure(row["ratio"]),
            row["target"] or "",
            met,
            str(row["n"]),
        ]
        table.add_row(row["name"], *figures)
    console = Console()
    # A table that goes into a file is not folded to the width of no terminal.
    (console if console.is_terminal else Console(width=160)).print(table)


def main(wanted: list[str]) -> int:
    unknown = set(wanted) - set(SUITES) - set(PARTS)
    if unknown:
        print(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    directory = Path("build/bench")
    directory.mkdir(parents=True, exist_ok=True)
    for suite in wanted or SUITES:
        print(f"measuring {suite} ...", file=sys.stderr, flush=True)
        rows = importlib.import_module(f"tests.bench.{suite}").measure()
        show(suite, rows)
        (directory / f"{suite}.json").write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
