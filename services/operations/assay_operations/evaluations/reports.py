"""Send runs to experiment trackers, and write reports to files."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.target import log_no_tries

if TYPE_CHECKING:
    from assay_evals.dataset.model import Dataset
    from assay_evals.reporters import Reporter
    from assay_evals.run.model import Run


def open_reporters(names: list[str] | None, option: str) -> "list[tuple[str, Reporter]]":
    """Open reporters by name. Raises `OperationError` before anything is asked or paid."""
    from assay_evals.reporters import ReporterError, open_reporter

    try:
        return [(each.partition("=")[0], open_reporter(each)) for each in names or ()]
    except ReporterError as error:
        raise OperationError("invalid", f"{option}: {error}") from None


def report_run(
    run: "Run", reporters: "list[tuple[str, Reporter]]", texts: "Dataset | None", tell: Callable[[str], None]
) -> None:
    """Send a run to each reporter, and `tell` its location. Raises `OperationError` after all were tried."""
    from assay_evals.reporters import Report, ReporterError

    log_no_tries()
    cases = {result.case_id for result in run.results}
    shared = {case.id: case for case in texts.cases if case.id in cases} if texts else {}
    failed: dict[str, str] = {}
    for name, reporter in reporters:
        try:
            tell(f"{name}: {reporter.report(Report(run, shared))}")
        except (ReporterError, OperationError) as error:
            failed[name] = str(error)
    if failed:
        again = " ".join(f"--to {name}" for name in failed)
        why = f"{'; '.join(failed.values())}; the run is kept"
        raise OperationError("unavailable", f"{why}, report it again with: assay eval report {run.run_id} {again}")


def expect_place(option: str, path: Path | None) -> None:
    """Refuse an unusable path for a report before anything is written. Raises `OperationError`."""
    if path is None:
        return
    if path.name == "-" or path.is_dir():
        raise OperationError(
            "invalid", f"{option}: {path} is {'a folder' if path.is_dir() else 'not a file'}: pass the path of a file"
        )
    if not path.parent.is_dir():
        raise OperationError("invalid", f"{option}: no folder {path.parent}")


def write_report(option: str, path: Path, text: str) -> None:
    """Write a report to a file. Raises `OperationError`."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OperationError("unavailable", f"{option}: {path} cannot be written: {error.strerror}") from None
