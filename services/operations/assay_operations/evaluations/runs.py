"""Names and folders of runs."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.run.model import Run


DEFAULT_RUNS = Path("runs")


def free_name(name: str | None, runs: Path, resume: bool) -> str:
    """Return the name of a run: the given one, or the time.

    A second run of the same second gets `-2`, and so on.

    Raises `OperationError` if it is taken or invalid.
    """
    from assay_evals.run.folder import RUN_FILE, run_folder
    from assay_evals.run.model import RunError

    if name is None:
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        names = itertools.chain((now,), (f"{now}-{number}" for number in itertools.count(2)))
        name = next(each for each in names if not (runs / each / RUN_FILE).exists())
    try:
        folder = run_folder(runs, name)
    except RunError as error:
        raise OperationError("invalid", f"--name: {error}; to choose the folder of the runs: --runs") from None
    begun = (folder / RUN_FILE).exists()
    if begun and not resume:
        raise OperationError(
            "conflict",
            f"{folder} already contains a run: resume it with --resume, choose another name, or delete that folder",
        )
    if resume and not begun:
        raise OperationError("not_found", f"--resume: no run {name} in {runs}: omit --resume to start one")
    return name


def cutoffs_of(text: str | None, k: int) -> tuple[int, ...]:
    """Return the cutoff ranks of the metrics. Raises `OperationError`."""
    from assay_evals.metrics.retrieval import DEFAULT_CUTOFFS

    if k < 1:
        raise OperationError("invalid", f"-k: {k} is below 1")
    if text is None:
        return tuple(each for each in DEFAULT_CUTOFFS if each <= k) or (k,)
    try:
        found = tuple(sorted({int(each) for each in text.split(",")}))
    except ValueError:
        raise OperationError("invalid", f"--cutoffs: {text!r} is not a list of ranks such as 5,10") from None
    if not 1 <= found[0] <= found[-1] <= k:
        raise OperationError("invalid", f"--cutoffs: {text!r} must be between 1 and {k} (-k)")
    return found


def find_run(name: str, runs: Path) -> "Run":
    """Read a run by its name or its folder. Raises `OperationError`, with the nearest name."""
    from assay_evals.field_names import nearest
    from assay_evals.run.folder import RUN_FILE, read_run

    folder = Path(name) if (Path(name) / RUN_FILE).exists() else runs / name
    if not (folder / RUN_FILE).exists():
        names = sorted(each.parent.name for each in runs.glob(f"*/{RUN_FILE}"))
        more = f": see `assay eval list --runs {runs}`" if names else ": start one with `assay eval run`"
        raise OperationError("not_found", f"{folder} contains no run{nearest(name, names)}{more}")
    return read_run(folder)


def list_folder(
    runs: Path, skipped: Callable[[Exception], None], *, project: str = "", tag: str = "", branch: str = "", limit: int
) -> "tuple[list[Run], int]":
    """Return the newest runs of a folder that match, newest last, and the number of all its runs.

    `skipped` gets the error of each run that cannot be read.
    """
    from assay_evals.run.folder import RUN_FILE, read_run
    from assay_evals.run.model import RunError

    existing: list[Run] = []
    for folder in sorted(runs.iterdir()) if runs.is_dir() else ():
        try:
            if (folder / RUN_FILE).exists():
                existing.append(read_run(folder))
        except RunError as error:
            skipped(error)
    matching = [
        run
        for run in sorted(existing, key=lambda one: one.started_at)
        if (not project or run.config.project == project)
        and (not tag or tag in run.config.tags)
        and (not branch or run.config.branch == branch)
    ]
    return matching[-limit:], len(existing)


def document_of(run: "Run") -> dict[str, Any]:
    """Return the figures of a run in a list of runs, for programs."""
    config = run.config
    shape = {"run_id": run.run_id, "started_at": run.started_at, "completed_at": run.completed_at}
    counts = {"cases": len(run.results), "errored": len(run.errored)}
    of = {"project": config.project, "tags": list(config.tags), "branch": config.branch}
    return shape | counts | of | {"code_version": config.code_version, "dirty": config.dirty}
