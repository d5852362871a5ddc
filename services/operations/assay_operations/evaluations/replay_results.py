"""Results file of a replay: NDJSON, one line per row, in the order of the rows; resumable.

`FILE.run.json` contains the inputs that `FILE` was started with. Resuming writes `FILE.part`: it copies valid results, and replays the rows
that errored or are missing. At the end, or at the next start after a kill, the part replaces the same number of lines of `FILE`. So `FILE`
always has one result per row, whenever the process dies.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import expect_resumable
from assay_runtime.private import opener, write_whole

if TYPE_CHECKING:
    from assay_evals.dataset.captured_rows import Captured
    from assay_evals.replay.replay_metrics import RowResult

_BLOCK = 65_536


def _private(path: Path, mode: str) -> TextIO:
    """Open a private file: results contain queries."""
    return cast("TextIO", open(path, mode, encoding="utf-8", buffering=1, opener=opener))


def begun_with(against: Path, target: str, k: int | None) -> dict[str, Any]:
    """Return the inputs of a replay without secrets. A replay can only be resumed with the same inputs.

    Pipes are not read.
    """
    from assay_evals.target.redaction import fingerprint_target, redact_target

    sha256 = None
    if against.is_file():
        with against.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "schema_version": 1,
        "target": redact_target(target),
        "target_seal": fingerprint_target(target),
        "k": k,
        "against_sha256": sha256,
    }


class ResultsFile:
    """Results by row; without a path nothing is kept. Raises `OperationError` for an unusable file."""

    def __init__(self, path: Path | None, resume: bool, against: Path, target: str, k: int | None) -> None:
        self._path = path
        self._resume = resume
        self._against = against
        self._target = target
        self._k = k
        self._earlier: TextIO | None = None
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        path = self._path
        if path is None:
            return self
        expect_resumable(path, self._resume)
        now, run_file = begun_with(self._against, self._target, self._k), path.with_name(path.name + ".run.json")
        if not path.exists():
            self._part.unlink(missing_ok=True)  # its file was deleted
            write_whole(run_file, json.dumps(now).encode() + b"\n")
            self._file = _private(path, "x")
            return self
        self._expect_same(_read_object(run_file), now, run_file)
        self._fold()
        self._earlier = path.open(encoding="utf-8")
        self._part.unlink(missing_ok=True)
        self._file = _private(self._part, "x")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()
        if self._earlier:
            self._earlier.close()
            self._fold()

    @property
    def _part(self) -> Path:
        assert self._path is not None
        return self._path.with_name(self._path.name + ".part")

    def _expect_same(self, before: dict[str, Any], now: dict[str, Any], run_file: Path) -> None:
        from assay_evals.target.redaction import matches_fingerprint

        if before.get("schema_version") != 1:
            raise OperationError(
                "invalid",
                f"--resume: {run_file} does not contain the inputs it was started with: choose another --output",
            )
        differing = [
            option
            for option, key in (("--target", "target"), ("-k", "k"), ("--against", "against_sha256"))
            if before.get(key) != now[key]
        ]
        sealed = before.get("target_seal")
        if not differing and sealed is not None and not matches_fingerprint(str(sealed), self._target):
            differing = ["--target (in a redacted part)"]
        if differing:
            raise OperationError(
                "invalid",
                f"--resume: {self._path} was started with another {' and another '.join(differing)}: "
                "pass the same, or choose another --output",
            )

    def _fold(self) -> None:
        """Replace the first lines of the file by those that a resumed process has written."""
        assert self._path is not None
        _cut_half_line(self._path)
        if not self._part.exists():
            return
        _cut_half_line(self._part)
        with self._part.open("rb") as part:
            lines = sum(1 for _ in part)
        with self._path.open("rb") as before, open(self._part, "ab", opener=opener) as part:
            part.writelines(islice(before, lines, None))
        self._part.replace(self._path)

    def with_earlier(self, rows: "Iterator[Captured]") -> "Iterator[tuple[Captured, RowResult | None]]":
        """Yield each row with its earlier result; None if it must be replayed, also after an error."""
        for number, line in enumerate(self._earlier or (), start=1):
            row = next(rows, None)
            if row is None:
                return  # with a smaller --limit, the other lines stay unchanged
            result = _result(row, line)
            if result is None:
                raise OperationError(
                    "invalid", f"--resume: {self._path}, line {number}, does not belong to the file of --against"
                )
            yield row, result if result.error is None else None
        for row in rows:
            yield row, None

    def write(self, result: "RowResult") -> None:
        """Write the result of a row; the query stays in the captured file only."""
        if self._file:
            record = {key: value for key, value in result.as_json().items() if key != "query"}
            self._file.write(json.dumps({"line": result.row.line} | record, ensure_ascii=False) + "\n")


def _result(row: "Captured", line: str) -> "RowResult | None":
    """Return the result of a row in a line; None if the line belongs to another row or is invalid."""
    from assay_evals.replay.replay_metrics import RowResult

    with suppress(ValueError, KeyError, TypeError):
        stored = json.loads(line)
        if (stored["line"], stored["id"]) == (row.line, row.id):
            return RowResult(
                row=row,
                jaccard=stored["jaccard"],
                top1=stored["top1Match"],
                ndcg=stored["ndcg"],
                current=stored["current_slugs"],
                current_latency_ms=stored["current_latency_ms"],
                skip_reason=stored.get("skip_reason"),
                error=stored.get("error_message"),
            )
    return None


def _read_object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _cut_half_line(path: Path) -> None:
    """Cut off an incomplete last line, which a killed process leaves."""
    with path.open("rb+") as file:
        size = file.seek(0, 2)
        while size:
            start = max(0, size - _BLOCK)
            file.seek(start)
            found = file.read(size - start).rfind(b"\n")
            if found >= 0:
                size = start + found + 1
                break
            size = start
        file.truncate(size)
