"""Evaluation runs: every case of a dataset is asked once, scored, and stored as it completes.

A run is a folder: `run.json` describes the configuration, `results.ndjson` has a line for each finished case. A killed
run can be resumed: a truncated last line is removed, failed cases are asked again, and each case is in the result once.
Texts returned by the target are not stored, because they have not been scrubbed.
"""

import fcntl
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson

from assay_evals.metrics.case_metrics import is_metric_name
from assay_evals.run.model import VERSION, CaseResult, Run, RunConfig, RunError
from assay_evals.strict_json import loads
from assay_evals.target.redaction import fingerprint_target, matches_fingerprint
from assay_runtime.private import opener, write_whole

RUN_FILE, RESULTS_FILE = "run.json", "results.ndjson"
_CACHE_FIELDS = ("hits", "calls", "saved_usd")
#: A run's name is the name of its folder.
_RUN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}")


def run_folder(runs: Path, name: str) -> Path:
    """Return the folder of a run. Raises `RunError` for a name that would lead outside."""
    if not _RUN_NAME.fullmatch(name):
        raise RunError(
            f"{name!r} is not the name of a folder: letters, digits and . _ + - (not . + - first), at most 128 of them"
        )
    return runs / name


class RunFolder:
    """A run's folder, opened for writing by one process.

    `target` is the target's full name; the configuration and the folder contain no secrets of it. Resuming a run needs
    the same name.
    """

    def __init__(self, folder: Path, config: RunConfig, *, resume: bool = False, target: str | None = None) -> None:
        self.folder = folder
        self.config = config
        self.done: dict[str, CaseResult] = {}
        #: Results of this run by the field that could not be parsed.
        self.unparsed_fields: Counter[str] = Counter()
        #: Responses of this run by a misspelt key and what it probably means.
        self.misspelt_keys: Counter[tuple[str, str]] = Counter()
        #: Returns at the end the judging that was paid for before, as in `Run.judge_cache`.
        self.judge_cache: Callable[[], Mapping[str, float]] = dict
        self._cached: Mapping[str, float] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(folder)
        try:
            self._open(folder / RUN_FILE, folder / RESULTS_FILE, resume=resume, target=target)
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self, run_file: Path, results_file: Path, *, resume: bool, target: str | None) -> None:
        folder, config = self.folder, self.config
        if run_file.exists():
            if not resume:
                raise RunError(
                    f"{folder} already contains a run: resume it with --resume, choose another name, or delete that folder"
                )
            before = read_run(folder)
            differing = _differing(before.config, config)
            self._seal = json.loads(run_file.read_text()).get("target_seal")
            if (
                not differing
                and target is not None
                and self._seal is not None
                and not matches_fingerprint(str(self._seal), target)
            ):
                differing = ["target (in a redacted part)"]
            if differing:
                raise RunError(f"{folder} is a run that differs in {', '.join(differing)}: choose another folder")
            if before.config.concurrency != config.concurrency:
                self.config = replace(config, concurrency=None)
            self.started_at, self._cached = before.started_at, before.judge_cache
            self.done = {result.case_id: result for result in before.results if result.error is None}
            _rewrite(results_file, self.done.values())
        else:
            self.started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._seal = None if target is None else fingerprint_target(target)
            self._write_run(None)
        self._file = open(results_file, "ab", opener=opener)  # noqa: SIM115  # open for the whole run

    def add(self, result: CaseResult) -> None:
        """Store a result."""
        self._file.write(orjson.dumps(asdict(result)) + b"\n")
        self._file.flush()
        self.done[result.case_id] = result

    def ask_again(self, case_ids: Iterable[str]) -> None:
        """Mark cases as not done. Their old results stay on disk until the new ones are there."""
        for case_id in case_ids:
            self.done.pop(case_id, None)

    def finish(self, order: Iterable[str]) -> Run:
        """End the run, with its results in the dataset's order, and release the folder."""
        self._file.close()
        results = [self.done[case_id] for case_id in order if case_id in self.done]
        _rewrite(self.folder / RESULTS_FILE, results)
        self._write_run(datetime.now(UTC).isoformat(timespec="milliseconds"))
        self.close()
        return read_run(self.folder)

    def close(self) -> None:
        """Leave the run as it is, to be resumed later."""
        self._file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _write_run(self, completed_at: str | None) -> None:
        document = {
            "schema_version": VERSION,
            "run_id": self.folder.name,
            "started_at": self.started_at,
            "completed_at": completed_at,
            "config": self.config.as_json(),
        }
        if self._seal is not None:
            document["target_seal"] = self._seal
        now = self.judge_cache()
        if cached := {name: self._cached.get(name, 0) + now.get(name, 0) for name in now or self._cached}:
            document["judge_cache"] = cached
        write_whole(self.folder / RUN_FILE, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def _locked(folder: Path) -> int:
    """Return a descriptor that locks the folder until it is closed, or the process ends.

    Raises `RunError`.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise RunError(f"{folder} is being written by another process: wait for that, or choose another name") from None
    except OSError:  # a file system without locks
        pass
    return descriptor


def read_run(folder: Path) -> Run:
    """Read a run from its folder, complete or not. A truncated last line is skipped. Raises `RunError`."""
    try:
        document = loads((folder / RUN_FILE).read_text())
    except FileNotFoundError:
        raise RunError(f"{folder} contains no run: {RUN_FILE} is missing") from None
    except OSError as error:
        raise RunError(f"{folder / RUN_FILE} cannot be read: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise RunError(f"{folder / RUN_FILE} is not JSON") from None
    if not isinstance(document, dict) or document.get("schema_version") != VERSION:
        raise RunError(f"{folder / RUN_FILE} was written by a later Assay: upgrade to read it")
    try:
        config = RunConfig.of_json(document["config"])
        named = document["run_id"], config, document["started_at"], document["completed_at"]
        valid = all(isinstance(each, str) for each in (named[0], named[2], named[3] or "")) and _usable(config)
    except (AttributeError, KeyError, TypeError, ValueError):
        valid = False
    if not valid:
        raise RunError(f"{folder / RUN_FILE} is not a valid run: a field is missing, unknown or of the wrong type")
    results: dict[str, CaseResult] = {}
    path = folder / RESULTS_FILE
    try:
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break  # the process was killed while it wrote this
        try:
            result = _checked(CaseResult(**orjson.loads(line)))
            results[result.case_id] = result
        except (ValueError, TypeError, AttributeError):
            raise RunError(
                f"{path}: line {number} is not a result: delete it, and continue the run with --resume"
            ) from None
    return Run(*named, list(results.values()), _cache_use(document.get("judge_cache")))


def _cache_use(kept: object) -> dict[str, float]:
    if not isinstance(kept, dict) or any(type(kept.get(name)) not in (int, float) for name in _CACHE_FIELDS):
        return {}
    return {name: kept[name] for name in _CACHE_FIELDS}


def _usable(config: RunConfig) -> bool:
    """True if the values used in computations have the right types."""
    numbers = (config.k, config.seed, *config.cutoffs)
    texts = (*config.tags, config.branch or "", *config.scorers, *config.scorers.values(), *config.sample)
    numbers += (config.sample["cases"],) if config.sample else ()
    return (
        all(isinstance(each, str) for each in texts)
        and all(type(each) is int for each in numbers)
        and config.seed >= 0
        and min(config.k, *config.cutoffs) >= 1
    )


def _checked(result: CaseResult) -> CaseResult:
    """Validate a result, since a run's folder may be an artefact of untrusted code. Raises `ValueError`."""
    metrics = result.metrics if isinstance(result.metrics, dict) else {"": None}  # which is no metric's name
    numbers = [value for value in (*metrics.values(), result.latency_ms) if value is not None]
    names = [result.case_id, result.query_type, *result.retrieved, result.error or "", result.cluster or ""]
    names += [text for values in result.slices.values() for text in values]
    if not (
        all(isinstance(each, str) for each in names)
        and all(isinstance(each, int | float) for each in (*numbers, result.weight))
        and all(map(is_metric_name, metrics))
    ):
        raise ValueError
    return result


def _differing(one: RunConfig, other: RunConfig) -> list[str]:
    before, after = asdict(one), asdict(other)
    return [
        name for name in before if name != "concurrency" and orjson.dumps(before[name]) != orjson.dumps(after[name])
    ]


def _rewrite(path: Path, results: Iterable[CaseResult]) -> None:
    write_whole(path, b"".join(orjson.dumps(asdict(result)) + b"\n" for result in results))
