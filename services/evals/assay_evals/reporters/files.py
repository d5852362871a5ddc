"""Write a run as files: the full `report.json`, and `cases.csv` with a line for each case."""

import csv
import io
import json
from pathlib import Path

from assay_evals.reporters import Report, ReporterError, known_scores
from assay_runtime.private import write_whole
from assay_schema.printable import no_formula


class Files:
    """Writes complete files, readable by their owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def report(self, report: Report) -> str:
        """Write both files, replacing existing ones."""
        folder = self._folder / report.run.run_id
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            whole = json.dumps(report.run.as_json(), ensure_ascii=False, indent=2)
            write_whole(folder / "report.json", f"{whole}\n".encode())
            write_whole(folder / "cases.csv", _table(report).encode())
        except OSError as error:
            raise ReporterError(f"files: {folder} cannot be written: {error.strerror}") from None
        return str(folder)


def _table(report: Report) -> str:
    names = report.run.names
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    texts = ["query", "expected_answer"] if report.texts else []
    lines.writerow(["case_id", "query_type", "error", "latency_ms", *names, *texts])
    for result in report.run.results:
        scores = known_scores(result)
        said = [report.input_of(result), report.expected_of(result)] if texts else []
        row = [result.case_id, result.query_type, result.error, result.latency_ms, *map(scores.get, names), *said]
        lines.writerow([no_formula(each) if isinstance(each, str) else each for each in row])
    return out.getvalue()


def files(where: str | None) -> Files:
    """Set up `files` or `files=FOLDER`; default: `reports`."""
    return Files(Path(where or "reports"))
