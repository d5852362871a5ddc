"""Output file of `assay eval longmemeval`: one line a question; resumable after any kill.

Lines are appended as questions are done. Resuming removes a half-written last line, the lines of errors and an earlier summary, and asks
what is missing. At the end the file is replaced once, in the order of the dataset. `FILE.run.json` has the inputs that the run was started
with, and is locked while a process writes.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import expect_resumable
from assay_runtime.private import opener, write_whole

if TYPE_CHECKING:
    from assay_evals.longmemeval.results import Result

#: Inputs that must be equal to resume a run, and their options.
_SAME = {
    "dataset_sha256": "DATASET", "target": "--target", "ingest": "--ingest", "top_k": "--top-k",
    "retrieval_only": "--retrieval-only", "keyword_only": "--keyword-only", "expansion": "--expansion", "model": "--model",
    "reader": "--model, or its settings",
    "judge": "--judge, or its model",
}  # fmt: skip


#: Other files of a run, named like its output and this.
OF_A_RUN = ("judge.ndjson", "summary.json")


class Output:
    """Results by question, on disk if there is a path."""

    def __init__(
        self, path: Path | None, begun_with: Mapping[str, Any], seals: Mapping[str, str], *, resume: bool
    ) -> None:
        """Open the file. `seals`: full names of targets by key, of which the file has only fingerprints.

        Raises `OperationError`.
        """
        self.path = path
        self.done: dict[str, Result] = {}
        #: Random text behind the names of memories and sessions, the same for all processes of a run.
        self.token = secrets.token_hex(16)
        self._file: IO[bytes] | None = None
        self._lock = -1
        if path is None:
            return
        expect_resumable(path, resume)
        try:
            self._open(path, begun_with, seals)
        except OSError as error:
            self.close()
            raise OperationError("invalid", f"--output: {path}: {error.strerror or type(error).__name__}") from None
        except BaseException:
            self.close()
            raise

    def _open(self, path: Path, begun_with: Mapping[str, Any], seals: Mapping[str, str]) -> None:
        from assay_evals.target.redaction import fingerprint_target

        run_file = path.with_name(path.name + ".run.json")
        self._lock = opener(str(run_file), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationError("conflict", f"--output: {path} is being written by another process") from None
        if path.exists() and path.stat().st_size:
            self.token = _expect_same(run_file, path, begun_with, seals)
            self.done = {each.question_id: each for each in read_results(path, "--resume") if not _is_open(each)}
            write_whole(path, _lines(self.done.values()))
        else:
            sealed = {f"{name}_seal": fingerprint_target(whole) for name, whole in seals.items()}
            document = {"schema_version": 1, "token": self.token, **begun_with, **sealed}
            if not path.exists():  # costs and summary of a file that was deleted are not those of this run
                for old in OF_A_RUN:
                    path.with_name(f"{path.name}.{old}").unlink(missing_ok=True)
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, json.dumps(document, ensure_ascii=False).encode() + b"\n", 0)
            os.fsync(self._lock)
        self._file = open(path, "ab", opener=opener)  # noqa: SIM115  # open for the whole run

    def beside(self, name: str) -> Path | None:
        """Return the path of another file of the run; None without an output file."""
        return None if self.path is None else self.path.with_name(f"{self.path.name}.{name}")

    def add(self, result: "Result") -> None:
        """Store a result."""
        self.done[result.question_id] = result
        if self._file is not None:
            self._file.write(_lines([result]))
            self._file.flush()

    def finish(self, order: Sequence[str], last_line: Mapping[str, Any] | None = None) -> None:
        """Sort the results by the dataset, with `last_line` at the end of the file.

        Those of questions beyond a smaller limit stay, at the end.
        """
        results = [self.done[name] for name in dict.fromkeys([*order, *self.done])]
        if self._file is not None and self.path is not None:
            self._file.close()
            self._file = None
            end = b"" if last_line is None else json.dumps(last_line, ensure_ascii=False).encode() + b"\n"
            write_whole(self.path, _lines(results) + end)

    def close(self) -> None:
        """Leave the file as it is, to be resumed later."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def read_results(path: Path, option: str) -> "list[Result]":
    """Read an output file, without summary and half-written last line. Raises `OperationError`."""
    from assay_evals.longmemeval.results import BY_TYPE, Result
    from assay_evals.strict_json import JsonError, loads

    try:
        content = path.read_bytes()
    except OSError as error:
        raise OperationError("invalid", f"{option}: {path}: {error.strerror or type(error).__name__}") from None
    results = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            document = loads(line.decode())
            if isinstance(document, dict) and document.get("kind") == BY_TYPE:
                continue
            results.append(Result.of_json(document))
        except (JsonError, ValueError, AttributeError):
            raise OperationError(
                "invalid", f"{option}: {path}: line {number} is not a result of this command: delete it"
            ) from None
    return results


def dataset_of(path: Path) -> str | None:
    """Return the SHA-256 of the dataset that an output was started with; None if that is not known."""
    try:
        sha256 = json.loads(path.with_name(path.name + ".run.json").read_bytes())["dataset_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return sha256 if isinstance(sha256, str) else None


def _is_open(result: "Result") -> bool:
    """True if a question must be asked again: it has no answer, or the model that answers from passages failed."""
    return result.error is not None or (result.judge_error is not None and not result.hypothesis)


def _lines(results: "Iterable[Result]") -> bytes:
    return b"".join(json.dumps(each.as_json(), ensure_ascii=False).encode() + b"\n" for each in results)


def _expect_same(run_file: Path, path: Path, now: Mapping[str, Any], seals: Mapping[str, str]) -> str:
    """Raise `OperationError` if the run was started with other inputs. Returns its token."""
    from assay_evals.target.redaction import matches_fingerprint

    try:
        before = json.loads(run_file.read_text(encoding="utf-8"))
        token = before["token"]
        valid = before["schema_version"] == 1 and isinstance(token, str)
    except (OSError, ValueError, KeyError, TypeError):
        valid = False
    if not valid:
        raise OperationError(
            "invalid",
            f"--resume: {run_file} does not contain the inputs that {path} was started with: choose another --output",
        )
    differing = [option for name, option in _SAME.items() if name in now and before.get(name) != now[name]]
    differing += [
        f"{_SAME[name]} (in a redacted part)"
        for name, whole in seals.items()
        if _SAME[name] not in differing
        and (sealed := before.get(f"{name}_seal")) is not None
        and not matches_fingerprint(str(sealed), whole)
    ]
    if differing:
        raise OperationError(
            "invalid",
            f"--resume: {path} was started with another {' and another '.join(differing)}: pass the same, or choose another --output",
        )
    return str(token)
