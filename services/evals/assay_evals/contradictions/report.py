"""The report of a run, as a document and as text. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from assay_evals.contradictions.findings import State
from assay_evals.contradictions.judging import NEXT_STEP, PROMPT_VERSION, SEVERITIES, Opinion, Severity, Verdict
from assay_evals.contradictions.pairs import Pair
from assay_evals.contradictions.rate import JudgedPair, Rate, pair_rate, query_rate

#: Why a run ended whose budget did not suffice.
BUDGET = "the budget is used up (--budget-usd)"
HOT_DOCUMENTS = 10
#: Findings that the text shows; the document has all.
_SHOWN = 20
#: Documents of a finding that the text shows.
DOCUMENTS_SHOWN = 10


class Status(StrEnum):
    """Status of a run at its end."""

    COMPLETED = "completed"
    #: The budget or the API ended it.
    PARTIAL = "partial"
    #: No pair was judged, for another reason than the budget, so there is no rate.
    JUDGE_FAILED = "judge_failed"


@dataclass(frozen=True)
class Result:
    """A pair with the verdict of both orders.

    `error`: kind of the failure if it was tried without a verdict. With neither, the budget or the API ended the run before.
    """

    pair: Pair
    opinion: Opinion | None = None
    error: str = ""
    finding_id: str = ""

    @property
    def is_certain(self) -> bool:
        """True if it was judged, and both orders agree."""
        return self.opinion is not None and self.opinion.verdict is not Verdict.UNCERTAIN

    @property
    def is_finding(self) -> bool:
        """True if there is something to do."""
        return self.opinion is not None and self.opinion.is_finding

    def judged(self, *, label: bool | None = None, label_probability: float | None = None) -> JudgedPair:
        """Return the pair for the rates."""
        return JudgedPair(
            self.pair.query,
            (self.pair.first.id, self.pair.second.id),
            self.pair.stratum,
            self.pair.probability,
            None if self.opinion is None else self.opinion.verdict is Verdict.CONTRADICTION,
            label,
            label_probability,
            failed=bool(self.error),
        )


@dataclass(frozen=True)
class Series:
    """Properties that the runs of a series share: a change of one starts another series."""

    model: str
    sampling: str
    scope: str
    prompt: str = PROMPT_VERSION


@dataclass(frozen=True)
class Facts:
    """A run: what it judged, with which model, at which cost. Costs are in US dollars."""

    run_id: str
    project: str
    series: Series
    judge_model: str
    started_at: datetime
    completed_at: datetime
    top_k: int
    seed: int
    estimated_usd: float
    cost_usd: float
    max_usd: float
    cache: Mapping[str, Any] | None = None
    #: Why the run ended early; empty if every pair was tried.
    stopped_by: str = ""
    #: Questions by the reason why they have no pair.
    without_pairs: Mapping[str, int] = field(default_factory=dict)


def status_of(results: Sequence[Result], stopped_by: str) -> Status:
    """Return how a run ended."""
    failed = stopped_by not in ("", BUDGET) or any(each.error for each in results)
    if failed and not any(each.opinion for each in results):
        return Status.JUDGE_FAILED
    return Status.PARTIAL if stopped_by else Status.COMPLETED


def report_of(facts: Facts, results: Sequence[Result], states: Mapping[str, State]) -> dict[str, Any]:
    """Return the report. Rates are of judged pairs; without any they are null, never 0."""
    judged = [(each, each.opinion) for each in results if each.opinion is not None]
    verdicts = Counter(opinion.verdict for _, opinion in judged)
    errors = Counter(each.error for each in results if each.error)
    pairs = [each.judged() for each in results]
    findings = [each for each in results if each.is_finding]
    return {
        "schema_version": 1,
        "kind": "contradictions_report",
        "run_status": status_of(results, facts.stopped_by).value,
        "stopped_by": facts.stopped_by or None,
        "run_id": facts.run_id,
        "project": facts.project,
        "started_at": facts.started_at.isoformat(timespec="milliseconds"),
        "duration_ms": round((facts.completed_at - facts.started_at).total_seconds() * 1000),
        "judge_model": facts.judge_model,
        "prompt_version": facts.series.prompt,
        "series": asdict(facts.series),
        "top_k": facts.top_k,
        "sampling": facts.series.sampling,
        "seed": facts.seed,
        "queries": len({each.pair.query for each in results}),
        "queries_evaluated": len({each.pair.query for each, _ in judged}),
        "queries_without_pairs": dict(facts.without_pairs),
        "queries_with_contradiction": len(
            {each.pair.query for each, found in judged if found.verdict is Verdict.CONTRADICTION}
        ),
        "queries_with_any_finding": len({each.pair.query for each in findings}),
        "total_contradictions_flagged": verdicts[Verdict.CONTRADICTION],
        "pairs_intended": len(results),
        "pairs_judged": len(judged),
        "pairs_cut": sum(each.pair.cut for each in results),
        "pairs_by_stratum": dict(Counter(each.pair.stratum.value for each in results)),
        "verdict_breakdown": {verdict.value: verdicts[verdict] for verdict in Verdict},
        "judge_errors": {"total": errors.total(), **errors},
        "rates": {"pairs": asdict(pair_rate(pairs)), "queries": asdict(query_rate(pairs))},
        "findings_by_state": {state.value: list(states.values()).count(state) for state in State},
        "resolved_findings": sorted(name for name, state in states.items() if state is State.RESOLVED),
        "gone_findings": sorted(name for name, state in states.items() if state is State.GONE),
        "cost_usd": facts.cost_usd,
        "est_cost_usd": facts.estimated_usd,
        "max_usd": facts.max_usd,
        "cache": facts.cache,
        "hot_pages": _hot(findings),
        "findings": _findings(findings, states),
        "per_query": _per_query(results),
    }


def exceeded(
    report: Mapping[str, Any], standing: Collection[Severity], max_rate: float | None, fail_on: str | None
) -> list[str]:
    """Return which limits a run exceeds: `contradictions` by its rate, `findings` by the severity of one.

    `standing`: severities of the findings that no person refuted. `fail_on`: the least severity; empty or None for no limit. The rate
    exceeds `max_rate` if the lower end of its interval does, regardless of the pairs with an error.
    """
    rate = report["rates"]["queries"]
    lower = rate["bounds"][0] if rate["bounds"] else rate["lower"]
    severities = [each.value for each in SEVERITIES]
    severe = severities[severities.index(fail_on) :] if fail_on else []
    found = ["contradictions"] if max_rate is not None and lower is not None and lower > max_rate else []
    return found + (["findings"] if any(each.value in severe for each in standing) else [])


def without_texts(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report without captured text, to be stored with the run."""
    return {name: value for name, value in report.items() if name not in ("findings", "per_query", "hot_pages")}


def _findings(results: Sequence[Result], states: Mapping[str, State]) -> list[dict[str, Any]]:
    """Return each finding once, in its most severe pair, those with the highest severity first."""
    by_severity = sorted(
        results, key=lambda each: -SEVERITIES.index(each.opinion.severity if each.opinion else Severity.INFO)
    )
    pairs = Counter(each.finding_id for each in results)
    documents: dict[str, set[str]] = {}
    for each in results:
        documents.setdefault(each.finding_id, set()).update((each.pair.first.id, each.pair.second.id))
    first = {each.finding_id: each for each in reversed(by_severity)}
    return [
        _finding(each, each.opinion, states)
        | {"pairs": pairs[each.finding_id], "all_documents": sorted(documents[each.finding_id])}
        for each in by_severity
        if each.opinion is not None and first[each.finding_id] is each
    ]


def _finding(result: Result, opinion: Opinion, states: Mapping[str, State]) -> dict[str, Any]:
    state = states.get(result.finding_id)
    return {
        "finding_id": result.finding_id,
        "state": None if state is None else state.value,
        "severity": opinion.severity.value,
        "verdict": opinion.verdict.value,
        "confidence": opinion.confidence,
        "query": result.pair.query,
        "documents": [result.pair.first.id, result.pair.second.id],
        "claims": list(opinion.claims),
        "reason": opinion.reason,
        "next_step": NEXT_STEP[opinion.verdict],
        "pair_id": result.pair.pair_id,
    }


def _per_query(results: Sequence[Result]) -> list[dict[str, Any]]:
    queries: dict[str, list[Result]] = {}
    for each in results:
        queries.setdefault(each.pair.query, []).append(each)
    return [
        {
            "query": query,
            "pairs_intended": len(of_query),
            "pairs_judged": sum(each.opinion is not None for each in of_query),
            "contradictions": sum(bool(each.judged().positive) for each in of_query),
            "findings": sum(each.is_finding for each in of_query),
        }
        for query, of_query in queries.items()
    ]


def _hot(findings: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the documents with the most findings."""
    seen: dict[str, list[Severity]] = {}
    for each in findings:
        if each.opinion:
            for document in (each.pair.first, each.pair.second):
                seen.setdefault(document.id, []).append(each.opinion.severity)
    hot = [
        {"slug": name, "appearances": len(found), "max_severity": max(found, key=SEVERITIES.index).value}
        for name, found in seen.items()
    ]
    return sorted(hot, key=lambda each: (-int(str(each["appearances"])), str(each["slug"])))[:HOT_DOCUMENTS]


def report_text(report: Mapping[str, Any]) -> str:
    """Return a report for people."""
    return "\n".join(_lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    if report["run_status"] == Status.JUDGE_FAILED:
        yield f"JUDGE FAILED: none of {report['pairs_intended']:,} pairs was judged, so there is no rate"
    for what, name in (("pairs", "pairs"), ("questions", "queries")):
        if (said := rate_text(report["rates"][name], what)) is not None:
            yield said
    if report["stopped_by"]:
        judged = "what was judged is a random part of the questions" if report["pairs_judged"] else "no pair was judged"
        yield f"ended early: {report['stopped_by']}; {judged}"
    yield "verdicts: " + (
        ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report["verdict_breakdown"].items() if count)
        or "none"
    )
    errors = report["judge_errors"]
    if errors["total"]:
        kinds = ", ".join(f"{count:,} {name}" for name, count in errors.items() if name != "total")
        yield f"judge errors: {errors['total']:,} ({kinds}); to correct the rate, label some: assay eval contradictions review --queue 100"
    if reasons := report["queries_without_pairs"]:
        yield "questions without a pair: " + ", ".join(f"{count:,} {name}" for name, count in reasons.items())
    states = ", ".join(f"{count:,} {name}" for name, count in report["findings_by_state"].items() if count)
    count = len(report["findings"])
    yield f"findings: {count:,}" + (f" ({states})" if states else "")
    yield f"cost ${report['cost_usd']:.4f} of at most ${report['max_usd']:.2f}; model {report['judge_model']}"
    for each in report["findings"][:_SHOWN]:
        yield ""
        yield from finding_lines(each)
    if (more := len(report["findings"]) - _SHOWN) > 0:
        yield f"... and {more:,} more: --json has all"


def finding_lines(finding: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a finding: severity, question, documents, claims, extent, next step.

    No text of a document adds a line."""
    state = f", {finding['state']}" if finding.get("state") else ""
    yield f"{finding['severity']}: {finding['verdict'].replace('_', ' ')}{state}  [{finding['pair_id']}]"
    yield f"  question: {one_line(finding['query'])}"
    for document, claim in zip(finding["documents"], finding["claims"], strict=True):
        yield f'  {one_line(document)}: "{one_line(claim)}"'
    if finding["pairs"] > 1:
        names = finding["all_documents"]
        shown = ", ".join(one_line(name) for name in names[:DOCUMENTS_SHOWN])
        yield f"  in {finding['pairs']:,} pairs; documents: {shown}{', ...' if len(names) > DOCUMENTS_SHOWN else ''} ({len(names):,})"
    yield f"  next: {finding['next_step']}"


def one_line(text: str) -> str:
    """Return a text without line breaks, so that it forges no line of a report."""
    return " ".join(text.split())


def rate_text(rate: Mapping[str, Any] | Rate, what: str) -> str | None:
    """Return a rate with interval, coverage and, if the judge failed, bounds; None without any."""
    each = asdict(rate) if isinstance(rate, Rate) else rate
    said = None
    if each["estimate"] is not None:
        said = (
            f"contradictory {what}: {each['estimate']:.1%} (95 % interval {each['lower']:.1%} to {each['upper']:.1%}), "
            f"{each['judged']:,} of {each['intended']:,} judged"
        )
    if each["bounds"] is None:
        return said
    return f"{said or f'contradictory {what}: no rate'}\n  {bounds_text(each['errors'], what, each['bounds'])}"


def bounds_text(errors: int, what: str, bounds: Sequence[float]) -> str:
    """Return what pairs (questions) with an error of the judge leave open, as a sentence."""
    return f"with the {errors:,} {what} that have a judge error: from {bounds[0]:.1%} to {bounds[1]:.1%}"
