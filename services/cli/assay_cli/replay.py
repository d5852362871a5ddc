"""`assay replay`: captured retrievals asked again, and how much the answers moved."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TextIO

import typer

from assay_cli.asking import Concurrency, Deadline, Retries, System, TargetName, Workspace, lines_of
from assay_cli.errors import CommandError
from assay_cli.progress import Mode, Progress
from assay_cli.terminal import ends_quietly, printable

if TYPE_CHECKING:
    from assay_evals.captured import Captured
    from assay_evals.replay import ReplaySummary, RowResult
    from assay_evals.runner import Asked
    from assay_evals.targets import Question

#: Characters of a question that a line for people shows.
_QUERY_SHOWN = 60


def replay(
    against: Annotated[Path, typer.Option(help="Captured rows: an export, a baseline, or written by hand (NDJSON).")],
    target: TargetName,
    limit: Annotated[int | None, typer.Option(help="Only the first N rows: of an export, the newest.")] = None,
    k: Annotated[int | None, typer.Option("-k", help="Compare the first K; default: as many as were captured.")] = None,
    top_regressions: Annotated[int, typer.Option(help="How many of the rows that moved most are shown.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --json: every row's result too.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write each row's result here as it is done (NDJSON), to go on from later.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after the rows that --output holds already.")] = False,
    workspace: Workspace = None,
    concurrency: Concurrency = 5,
    deadline: Deadline = 30.0,
    retries: Retries = 2,
    progress: Annotated[Mode, typer.Option(help="Progress on stderr: for people, as JSON, or none.")] = Mode.AUTO,
) -> None:
    """Ask a system what was captured, and say how far its answers are from those of then. Exits 0 however far; `assay gate` judges."""
    from assay_evals.captured import read_captured
    from assay_evals.replay import ReplaySummary

    _check(limit, k, top_regressions, resume, output, verbose, as_json)
    system = System(target, workspace, concurrency, deadline, retries)
    summary = ReplaySummary(top=top_regressions)
    rows = islice(read_captured(lines_of(against, "--against")), limit)
    kept: list[dict[str, Any]] = []
    with ends_quietly(), Progress(progress) as seen, ResultsFile(output, resume) as results:

        def count(result: "RowResult") -> None:
            summary.add(result)
            seen.rows += 1
            if verbose:
                kept.append(result.as_json())

        def take(asked: "Asked[Captured]") -> None:
            result = result_of(asked, k)
            results.write(result)
            count(result)

        for result in results.before(rows):
            count(result)

        system.ask(rows, lambda row: question_of(row, k), take)
    if as_json:
        document: dict[str, Any] = {"schema_version": 1, "summary": summary.as_json()}
        typer.echo(json.dumps(document | ({"results": kept} if verbose else {}), ensure_ascii=False, indent=2))
    else:
        _say(summary)


def question_of(row: "Captured", k: int | None = None) -> "Question | None":
    """What a captured row is asked as; None where it cannot be asked."""
    from assay_evals.replay import DEFAULT_K, skip_reason
    from assay_evals.targets import Question

    if skip_reason(row):
        return None
    detail, expand, params = (row.record.get(name) for name in ("detail", "expand_enabled", "params"))
    return Question(
        query=row.query,
        limit=k or max(len(row.slugs), DEFAULT_K),
        tool_name=row.tool_name,
        detail=detail if isinstance(detail, str) else None,
        expand_enabled=expand if isinstance(expand, bool) else None,
        params=params if isinstance(params, dict) else {},
    )


def result_of(asked: "Asked[Captured]", k: int | None = None) -> "RowResult":
    """A row's result from what came back."""
    from assay_evals.replay import RowResult, compare_row, skip_reason

    if asked.answer is not None:
        return compare_row(asked.item, asked.answer, k)
    return RowResult(asked.item, skip_reason=skip_reason(asked.item), error=asked.error)


class ResultsFile:
    """The file of results: written in the order of the rows, so that going on is skipping as many rows as it has lines."""

    def __init__(self, path: Path | None, resume: bool) -> None:
        self._path, self._resume = path, resume
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        if self._path.exists() and not self._resume:
            raise CommandError(f"--output: {self._path} is there already: go on with --resume, or name another file")
        if self._path.exists():
            _cut_half_line(self._path)
        self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def before(self, rows: "Iterator[Captured]") -> "Iterator[RowResult]":
        """What it held already, row by row; takes as many off `rows`."""
        if self._path is None or not self._resume:
            return
        from assay_evals.replay import RowResult

        with self._path.open(encoding="utf-8") as done:
            for number, line in enumerate(done, start=1):
                row, stored = next(rows, None), _stored(line)
                if row is None or (stored.get("line"), stored.get("id")) != (row.line, row.id):
                    raise CommandError(f"--resume: {self._path}, line {number}, is of another file than --against")
                yield RowResult(
                    row=row,
                    jaccard=stored["jaccard"],
                    top1=stored["top1Match"],
                    ndcg=stored["ndcg"],
                    current=stored["current_slugs"],
                    current_latency_ms=stored["current_latency_ms"],
                    skip_reason=stored.get("skip_reason"),
                    error=stored.get("error_message"),
                )

    def write(self, result: "RowResult") -> None:
        """One line a row; what was asked stays in the captured file."""
        if self._file:
            record = {"line": result.row.line} | {
                key: value for key, value in result.as_json().items() if key != "query"
            }
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _stored(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _cut_half_line(path: Path) -> None:
    """Take off a last line that was being written when the process was killed."""
    with path.open("rb+") as file:
        size = file.seek(0, 2)
        while size:
            start = max(0, size - 65_536)
            file.seek(start)
            found = file.read(size - start).rfind(b"\n")
            if found >= 0:
                size = start + found + 1
                break
            size = start
        file.truncate(size)


def _check(
    limit: int | None, k: int | None, top: int, resume: bool, output: Path | None, verbose: bool, as_json: bool
) -> None:
    for option, value, least in (("--limit", limit, 1), ("-k", k, 1), ("--top-regressions", top, 0)):
        if value is not None and value < least:
            raise CommandError(f"{option}: {value} is below {least}")
    if resume and output is None:
        raise CommandError("--resume needs --output, the file that holds what is done")
    if verbose and not as_json:
        raise CommandError("--verbose shows every row's result in JSON: give --json too")


def _say(summary: "ReplaySummary") -> None:
    ratio = "" if summary.latency_ratio is None else f" ({summary.latency_ratio:.2f}×)"
    typer.echo(
        f"Replayed {summary.rows_replayed:,} of {summary.rows_total:,} captured queries "
        f"({summary.rows_skipped:,} skipped, {summary.rows_errored:,} errored)\n"
        f"Mean Jaccard@k:   {summary.mean_jaccard:.3f}\n"
        f"Top-1 stability:  {summary.top1_stability_rate:.1%}\n"
        f"Mean nDCG@k:      {summary.as_json()['mean_ndcg']:.3f}  (beside the captured order)\n"
        f"Mean latency Δ:   {summary.mean_latency_delta_ms:+,.0f} ms{ratio}, {summary.rows_over_2x_latency:,} over 2×"
    )
    if summary.rows_source_ambiguous:
        count = f"{summary.rows_source_ambiguous:,} row(s)"
        typer.echo(
            f"{count} were captured from several sources, without saying which slug is whose: compared by slug alone"
        )
    if summary.worst:
        typer.echo(f"\nTop {len(summary.worst)} regression(s):")
    for result in summary.worst:
        query = printable(result.row.query)
        shown = query if len(query) <= _QUERY_SHOWN else query[: _QUERY_SHOWN - 1] + "…"
        typer.echo(
            f"  jaccard={result.jaccard:.2f} captured={len(result.row.slugs)} current={len(result.current)}  {shown!r}"
        )
    for result in summary.errors[:3]:
        typer.echo(f"errored: row {result.row.id}: {result.error}", file=sys.stderr)
