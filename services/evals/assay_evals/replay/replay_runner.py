"""Run replays and gates from a notebook, a test or the command line.

Files are given by path or content; targets are functions, or names as on the command line. A missing or invalid file
raises `EvalsError`.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from assay_evals.compare.rules_file import RulesFile, read_rules
from assay_evals.compare.verdicts import Verdict
from assay_evals.dataset.captured_rows import Captured, read_captured
from assay_evals.dataset.qrels import KnownQuery, read_qrels
from assay_evals.errors import EvalsError
from assay_evals.files import lines_of, text_of
from assay_evals.metrics.scorers import Scoring
from assay_evals.replay.baseline import Baseline, Thresholds, read_baseline
from assay_evals.replay.correctness import Correctness, Floors
from assay_evals.replay.gates import NOT_RUN, correctness_gate, gate_verdict, regression_gate
from assay_evals.replay.replay_metrics import DEFAULT_K, ReplaySummary, RowResult, compare_row, skip_reason
from assay_evals.replay.rules_gate import RulesGate, expect_fit
from assay_evals.target.response import TargetResponse
from assay_evals.target.runner import QueryResult, RunnerOptions, run_queries, run_sync
from assay_evals.target.targets import Question, Target, as_target


def question_of(row: Captured, k: int | None = None) -> Question | None:
    """Return the question of a captured row; None if it cannot be replayed."""
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


def result_of(row: Captured, answer: TargetResponse | None, error: str | None, k: int | None = None) -> RowResult:
    """Build a row's result from the target's response."""
    if answer is not None:
        return compare_row(row, answer, k)
    return RowResult(row, skip_reason=skip_reason(row), error=error)


def replay_captured(
    against: str | Path | Iterable[Captured],
    target: Callable[..., Any] | str,
    *,
    k: int | None = None,
    limit: int | None = None,
    top: int = 5,
    runner_options: RunnerOptions | None = None,
    on_result: Callable[[RowResult], None] | None = None,
) -> ReplaySummary:
    """Replay captured queries.

    Keeps only the rows in progress and the `top` that changed most; `on_result` gets each.
    """
    summary, options = ReplaySummary(top=top), runner_options or RunnerOptions()

    def take(reply: QueryResult[Captured]) -> None:
        result = result_of(reply.item, reply.answer, reply.error, k)
        summary.add(result)
        if on_result:
            on_result(result)

    system = as_target(target, options.deadline_s, options.concurrency)
    if not isinstance(against, str | Path):
        run_sync(run_queries(system, islice(against, limit), lambda row: question_of(row, k), options, take))
        return summary
    rows = islice(read_captured(lines_of(against)), limit)
    run_sync(run_queries(system, rows, lambda row: question_of(row, k), options, take))
    return summary


def run_gate(
    target: Callable[..., Any] | str | Target,
    *,
    baseline: str | Path | Baseline | None = None,
    qrels: str | Path | Sequence[KnownQuery] | None = None,
    k: int = 10,
    thresholds: Thresholds | None = None,
    floors: Floors | None = None,
    rules: str | Path | RulesFile | None = None,
    scoring: Scoring | None = None,
    inconclusive: Verdict = Verdict.INCONCLUSIVE,
    runner_options: RunnerOptions | None = None,
    on_answer: Callable[[], None] | None = None,
    closing: Callable[[], Awaitable[None]] | None = None,
) -> dict[str, Any]:
    """Check a target against a baseline, relevance judgements, or both.

    Returns the verdict that `assay gate --json` prints; it has an `error` if the target answered no question.
    `thresholds` of None are the baseline's own. `rules`: floors of scorers and latency, with the scorers of the file
    unless `scoring` is given. `inconclusive` is what thresholds with too few rows count as. `on_answer` is called after
    each question, `closing` at the end.
    """
    published, known = _baseline(baseline), _known(qrels)
    if not published and not known:
        raise EvalsError("name a baseline, qrels, or both: a gate without them passes everything")
    options, results, total = runner_options or RunnerOptions(), list[RowResult](), Correctness(k=k)
    on_answer, scored = on_answer or (lambda: None), _rules_gate(rules, scoring, options)
    answers, errors = 0, Counter[str]()

    def count(reply: QueryResult[Captured] | QueryResult[KnownQuery]) -> None:
        nonlocal answers
        answers += reply.answer is not None or reply.unscored
        errors.update([reply.error] if reply.error else [])
        _score(scored, reply)
        on_answer()

    def replayed(reply: QueryResult[Captured]) -> None:
        results.append(result_of(reply.item, reply.answer, reply.error))
        count(reply)

    def answered(reply: QueryResult[KnownQuery]) -> None:
        if reply.answer is not None:
            total.add(reply.item, reply.answer)
        else:
            total.fail(reply.item, reply.error or "no answer")
        count(reply)

    async def work() -> None:
        system = as_target(target, options.deadline_s, options.concurrency)
        judge = scored.score if scored else None
        try:
            if published:
                await run_queries(system, published.rows, question_of, options, replayed, judge=judge, close=False)
            await run_queries(
                system, known, lambda each: Question(each.query, limit=k), options, answered, judge=judge, close=False
            )
        finally:
            await _closed(scored, closing)
            await system.close()

    run_sync(work())
    regression = correctness = NOT_RUN
    if published:
        path = "" if isinstance(baseline, Baseline) else os.fspath(baseline or "")
        regression = regression_gate(published, results, thresholds or published.thresholds, path=path)
    if known:
        path = os.fspath(qrels) if isinstance(qrels, str | Path) else ""
        correctness = correctness_gate(total, floors or Floors(), path=path)
    path = os.fspath(rules) if isinstance(rules, str | Path) else ""
    held = scored.verdict(path=path) if scored else NOT_RUN
    unanswered = ""
    if errors and not answers:
        ((most, _),) = errors.most_common(1)
        unanswered = f"the target answered none of {errors.total():,} questions, most often because of: {most}"
    return gate_verdict(regression, correctness, held, inconclusive=inconclusive, error=unanswered)


def _score(scored: RulesGate | None, reply: QueryResult[Captured] | QueryResult[KnownQuery]) -> None:
    if scored is not None and reply.answer is not None:
        scored.add(reply.item, reply.answer, reply.judged)


async def _closed(scored: RulesGate | None, closing: Callable[[], Awaitable[None]] | None) -> None:
    if scored is not None:
        scored.scoring.close()
    if closing is not None:
        await closing()


def _rules_gate(
    rules: str | Path | RulesFile | None, scoring: Scoring | None, options: RunnerOptions
) -> RulesGate | None:
    """Return the scoring of the answers, if requested. Raises `EvalsError` for rules without effect."""
    if rules is None and scoring is None:
        return None
    held = read_rules(Path(rules)) if isinstance(rules, str | Path) else rules or RulesFile()
    used = scoring or Scoring(held.scorers, deadline_s=options.deadline_s)
    held.expect_known([spec.metric for spec in used.specs])
    used.expect_judge(())
    expect_fit(held, used)
    return RulesGate(held, used)


def _baseline(given: str | Path | Baseline | None) -> Baseline | None:
    if given is None or isinstance(given, Baseline):
        return given
    return read_baseline(lines_of(given))


def _known(given: str | Path | Sequence[KnownQuery] | None) -> Sequence[KnownQuery]:
    return read_qrels(text_of(given)) if isinstance(given, str | Path) else given or []
