"""Replay captured queries against a system."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import captured_of
from assay_operations.evaluations.replay_results import ResultsFile
from assay_operations.evaluations.target import TargetConfig
from assay_operations.progress import Counts

if TYPE_CHECKING:
    from assay_evals.dataset.captured_rows import Captured
    from assay_evals.replay.replay_metrics import RowResult
    from assay_evals.target.runner import QueryResult


class Replay:
    """Replays captured queries; `summary` is updated while it runs."""

    def __init__(
        self,
        against: Path,
        system: TargetConfig,
        *,
        limit: int | None,
        k: int | None,
        top: int,
        output: Path | None,
        resume: bool,
    ) -> None:
        """Validate the options. Raises `OperationError`."""
        from assay_evals.replay.replay_metrics import ReplaySummary

        for option, value, least in (("--limit", limit, 1), ("-k", k, 1), ("--top-regressions", top, 0)):
            if value is not None and value < least:
                raise OperationError("invalid", f"{option}: {value} is below {least}")
        if resume and output is None:
            raise OperationError("invalid", "--resume needs --output, the file with the results so far")
        self.summary = ReplaySummary(top=top)
        self._against = against
        self._system = system
        self._limit = limit
        self._k = k
        self._output = output
        self._resume = resume

    def run(self, seen: Counts, on_result: "Callable[[RowResult], None] | None" = None) -> None:
        """Replay every row, and write each result to the output file as it is done."""
        from assay_evals.replay.replay_runner import question_of, result_of

        rows = islice(captured_of(self._against, "--against"), self._limit)
        with ResultsFile(self._output, self._resume, self._against, self._system.target, self._k) as results:

            def take(asked: "QueryResult[tuple[Captured, RowResult | None]]") -> None:
                row, earlier = asked.item
                result = earlier or result_of(row, asked.answer, asked.error, self._k)
                results.write(result)
                self.summary.add(result)
                seen.rows += 1
                if on_result:
                    on_result(result)

            self._system.ask(
                results.with_earlier(rows), lambda each: None if each[1] else question_of(each[0], self._k), take
            )
