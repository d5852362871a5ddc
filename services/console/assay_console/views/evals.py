"""Pages of evaluation runs and their comparison."""

import asyncio
from collections.abc import Sequence
from itertools import groupby

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_operations.errors import OperationError
from assay_operations.evaluations.stored import (
    RUNS_MAX,
    Compared,
    ComparedCase,
    Move,
    OneRun,
    Outcome,
    RunRow,
    Side,
    case_in,
    compare_in,
    moves,
    outcomes_in,
    run_in,
    runs_in,
)
from assay_operations.golden.datasets import SavedCase, latest_version, questions_of


class Comparable(Document):
    """Runs over the same cases: only these compare."""

    dataset: str
    dataset_version: str
    dataset_fingerprint: str
    runs: tuple[RunRow, ...]
    #: Metrics of the table.
    metrics: tuple[str, ...]


class RunList(Document):
    """Stored runs by dataset. `more`: there are older runs than are listed."""

    groups: tuple[Comparable, ...]
    more: bool


class Runs(Document):
    """Stored runs by dataset, and the nightly attempts of the range."""

    runs: Panel[RunList]
    nights: Panel[tuple[Outcome, ...]]


class OneRunPage(Document):
    """One run, and the runs that it compares with."""

    found: OneRun
    comparable: tuple[RunRow, ...]


class Compare(Document):
    """Two runs compared; nothing if the link does not name both."""

    base: str
    change: str
    worse_only: bool
    found: Compared | None
    #: Questions by case id, from the dataset in the store: runs hold none.
    questions: dict[str, str]
    #: Runs to choose from, without a comparison.
    choices: tuple[RunRow, ...]


class Result(Document):
    """The result list of one run."""

    run: RunRow
    query_type: str
    latency_ms: float | None
    error: str
    metrics: dict[str, float]
    items: tuple[Move, ...]


class CasePage(Document):
    """One case in two runs."""

    case_id: str
    base: str
    change: str
    metric: str
    worse_only: bool
    baseline: Result
    candidate: Result
    #: From the dataset in the store, if it has the case: runs hold no questions.
    question: str
    expected: tuple[str, ...]
    #: Expected documents that neither run returned.
    absent: tuple[str, ...]
    null_case: bool
    case_version: int
    previous: str
    next: str
    place: int | None
    listed: int


async def read_list(ask: Ask) -> Runs:
    """Read the runs and the nights."""
    runs, nights = await asyncio.gather(
        ask.panel(runs_in, ask.scope.project), ask.panel(outcomes_in, ask.scope.project, ask.scope.from_ms)
    )
    listed = RunList(groups=grouped(runs.value), more=len(runs.value) >= RUNS_MAX) if runs.value is not None else None
    panel = Panel[RunList](state=runs.state, value=listed, message=runs.message, fix=runs.fix, age_s=runs.age_s)
    return Runs(runs=panel, nights=nights)


def grouped(runs: Sequence[RunRow]) -> tuple[Comparable, ...]:
    """Group runs by the fingerprint of their dataset; the group with the newest run is first. Pure."""
    first = {each.dataset_fingerprint: place for place, each in reversed(list(enumerate(runs)))}
    ordered = sorted(runs, key=lambda each: first[each.dataset_fingerprint])
    groups = []
    for fingerprint, members in groupby(ordered, key=lambda each: each.dataset_fingerprint):
        rows = tuple(members)
        groups.append(
            Comparable(
                dataset=rows[0].dataset,
                dataset_version=rows[0].dataset_version,
                dataset_fingerprint=fingerprint,
                runs=rows,
                metrics=shown_metrics(rows),
            )
        )
    return tuple(groups)


def shown_metrics(rows: Sequence[RunRow]) -> tuple[str, ...]:
    """Return up to four metrics for the table, those first that say most. Pure."""
    known = dict.fromkeys(name for each in rows for name in each.means)
    wanted = ("ndcg@10", "recall@10", "mrr", "faithfulness", "null_accuracy")
    return tuple([*(name for name in wanted if name in known), *(name for name in known if name not in wanted)][:4])


async def read_run(ask: Ask) -> OneRunPage:
    """Read one run."""
    found, runs = await asyncio.gather(
        ask.rollup(run_in, ask.path["run_id"], ask.scope.project), ask.rollup(runs_in, ask.scope.project)
    )
    same = [
        each
        for each in runs
        if each.dataset_fingerprint == found.run.dataset_fingerprint and each.run_id != found.run.run_id
    ]
    return OneRunPage(found=found, comparable=tuple(same[:50]))


async def read_compare(ask: Ask) -> Compare:
    """Compare two runs, or list those to choose from."""
    base, change, worse = ask.text("base"), ask.text("change"), bool(ask.text("only"))
    found: Compared | None = None
    choices: tuple[RunRow, ...] = ()
    questions: dict[str, str] = {}
    if base and change:
        found = await ask.rollup(
            compare_in, base, change, metric=ask.text("metric"), project=ask.scope.project, worse_only=worse
        )
        run, listed = found.candidate, tuple(each.case_id for each in found.cases)
        questions = await ask.rollup(questions_of, run.project, run.dataset, listed) if listed else {}
    else:
        choices = (await ask.rollup(runs_in, ask.scope.project))[:200]
    return Compare(base=base, change=change, worse_only=worse, found=found, questions=questions, choices=choices)


async def read_case(ask: Ask) -> CasePage:
    """Read one case of two runs."""
    base, change, case_id = ask.text("base"), ask.text("change"), ask.path["case_id"]
    if not (base and change):
        raise OperationError("not_found", "the link names no runs: base= and change=", "choose two runs: /evals")
    found = await ask.rollup(
        case_in, case_id, base, change, metric=ask.text("metric"), project=ask.scope.project,
        worse_only=bool(ask.text("only")),
    )  # fmt: skip
    run = found.candidate.run
    case = await ask.rollup(latest_version, run.project, run.dataset, case_id)
    return case_page(found, case, base, change, worse_only=bool(ask.text("only")))


def case_page(found: ComparedCase, case: SavedCase | None, base: str, change: str, *, worse_only: bool) -> CasePage:
    """Return both result lists with the moves between them. Pure."""
    expected = (case.expected_slugs or tuple(map(str, case.expected_chunk_ids))) if case else ()
    marked = frozenset(expected) if case else None
    returned = {*found.baseline.retrieved, *found.candidate.retrieved}
    return CasePage(
        case_id=found.case_id,
        base=base,
        change=change,
        metric=found.metric,
        worse_only=worse_only,
        baseline=_result(found.baseline, found.candidate, marked),
        candidate=_result(found.candidate, found.baseline, marked),
        question=case.query if case else "",
        expected=expected,
        absent=tuple(name for name in expected if name not in returned),
        null_case=bool(case and case.null_case),
        case_version=case.version if case else 0,
        previous=found.previous,
        next=found.next,
        place=found.place,
        listed=found.listed,
    )


def _result(side: Side, other: Side, expected: frozenset[str] | None) -> Result:
    return Result(
        run=side.run,
        query_type=side.query_type,
        latency_ms=side.latency_ms,
        error=side.error,
        metrics=side.metrics,
        items=moves(side.retrieved, other.retrieved, expected),
    )


_BASE = Parameter("base", "The run to compare with: id or name.", longest=255)
_CHANGE = Parameter("change", "The run that may go out: id or name.", longest=255)
_METRIC = Parameter(
    "metric",
    "Metric of the cases and query types; empty: one that failed, or else the first that both measure.",
    longest=200,
)
_ONLY = Parameter("only", "1: only cases that got worse.", ("1",))
PAGE = Page(
    "runs",
    "/evals",
    "Evaluations",
    "May this change go out?",
    read_list,
    Runs,
    span="30d",
    by_project=True,
    key="r",
    sql="SELECT run_id, name, dataset, target, started_at, cases, errored, means FROM eval_runs ORDER BY started_at DESC LIMIT 100",
    command="assay eval list --store{and_project}",
    api="/runs",
)
RUN = Page(
    "run",
    "/evals/runs/{run_id}",
    "Run",
    "How good is it?",
    read_run,
    OneRunPage,
    span="",
    by_project=True,
    within="runs",
    command="assay eval show {run_id} --store",
    api="/runs/{run_id}",
)
COMPARE = Page(
    "compare",
    "/evals/compare",
    "Compare",
    "Is it better, and by how much?",
    read_compare,
    Compare,
    (_BASE, _CHANGE, _METRIC, _ONLY),
    span="",
    by_project=True,
    within="runs",
    command="assay eval compare {base} {change} --store",
    api="/compare",
)
CASE = Page(
    "case",
    "/evals/case/{case_id:path}",
    "Case",
    "What moved?",
    read_case,
    CasePage,
    (_BASE, _CHANGE, _METRIC, _ONLY),
    span="",
    by_project=True,
    within="runs",
)
