"""`assay eval longmemeval` on a file as large as the benchmark's S: memory holds a few rows, not the file."""

import json
import os
import random
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.longmemeval import large_row

#: Size of longmemeval_s_cleaned.json, and of its rows on average.
BYTES, ROWS = 277_383_467, 500
#: Most that the large file may add to the memory of a run: a fraction of its size.
MORE_KB = 60_000
TARGET = "def memory(query, tool_name, params):\n    return {'results': ['answer_large_1']}\n"


def write_rows(path: Path, count: int) -> None:
    """Write rows that differ in their ids, as an array on one line, like the released file."""
    generator = random.Random(7)
    whole = json.dumps(large_row(0, BYTES // ROWS, generator))
    whole += " " * max(0, BYTES // ROWS - len(whole) - 2)
    with path.open("w") as file:
        for number in range(count):
            file.write(("[" if number == 0 else ", ") + whole.replace("large0", f"large{number}"))
        file.write("]")


def peak_kb(folder: Path, dataset: str, output: str) -> int:
    """Run the command, and return the most memory that it held."""
    arguments = (
        "eval",
        "longmemeval",
        dataset,
        "--retrieval-only",
        "--target",
        "small_memory:memory",
        "--output",
        output,
    )
    process = Cli(folder).start(*arguments, role="evaluator")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stdout is not None
    assert process.stderr is not None
    said = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert process.returncode == 0, said
    return usage.ru_maxrss


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "small_memory.py").write_text(TARGET)
    write_rows(tmp_path / "few.json", 20)
    write_rows(tmp_path / "s.json", ROWS)
    assert (tmp_path / "s.json").stat().st_size >= BYTES
    few, many = peak_kb(tmp_path, "few.json", "few.jsonl"), peak_kb(tmp_path, "s.json", "s.jsonl")
    assert len((tmp_path / "s.jsonl").read_text().splitlines()) == ROWS
    assert many < few + MORE_KB, f"{few:,} kB with 20 rows, {many:,} kB with {ROWS}"
