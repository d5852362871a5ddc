"""Report a comparison as one HTML page without scripts. Pure."""

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.comparison import MetricComparison
from assay_evals.compare.sides import sides
from assay_evals.compare.verdicts import Verdict
from assay_evals.metrics.case_metrics import PATH
from assay_evals.report.wording import (
    _INTERVALS,
    _P,
    METRIC_COLUMNS,
    _between,
    change,
    escape,
    metric_cells,
    notes,
    number,
    problems,
    shown_metric,
    verdict_in_words,
)
from assay_evals.run.model import CaseResult

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--dim:#667085;--line:#d9dee7;--good:#1a7f4b;--bad:#b42318;--unsure:#9a6700;--bg:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--dim:#98a2b3;--line:#344054;--good:#4ade80;--bad:#f97066;--unsure:#fdb022;--bg:#111827}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--bg);max-width:68rem;margin:2rem auto;padding:0 1rem}
h1 b{text-transform:uppercase}.pass{color:var(--good)}.fail{color:var(--bad)}.inconclusive{color:var(--unsure)}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}
small,.dim{color:var(--dim)}svg{width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}
.wide{overflow-x:auto}.key{margin:.2rem 0 0;color:var(--dim);font-size:.85em}
.cols{display:grid;grid-template-columns:1fr 1fr;gap:1rem;overflow-wrap:anywhere}
ol{margin:.2rem 0;padding-left:1.4rem}li.hit{color:var(--good);font-weight:600}
@media(max-width:46rem){.forest text{font-size:21px}.stacked tr:first-child{display:none}
.stacked tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}.stacked td{display:flex;gap:1rem;border:0;padding:.1rem 0}
.stacked td::before{content:attr(data-of);flex:0 0 8rem;color:var(--dim)}}
"""
#: The page has no script, no address and no form; should anything in it ever be one, the browser does not obey it.
_POLICY = (
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'\">"
)
_COLUMNS = ("verdict", *METRIC_COLUMNS)
#: Columns of words; the others are aligned as numbers.
_WORDS = {"metric", "stage", "meaning"}
_LEGEND = "A line is a metric's change and its interval; right is better. Vertical line: no change. Dashed mark: the change that fails."


def html(paired: PairedRuns, verdict: Verdict, *, relevance: dict[str, set[str]] | None = None) -> str:
    """Return one page without scripts or addresses.

    It shows the verdict, changes with their intervals, query types, and the worst cases side by side.

    `relevance`, by case id, marks the documents that should have come back; without it the page says which option does.
    """
    comparison, metric = paired.comparison, shown_metric(paired)
    rows = "".join(_row(m) for m in comparison.metrics)
    paragraphs = "".join(f"<p class=fail>{escape(problem)}</p>" for problem in problems(paired))
    kinds = _types(paired, metric) if metric else ""
    worst = _worst(paired, metric, relevance) if metric else ""
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8>{_POLICY}<meta name=viewport content='width=device-width'>"
        f"<title>Evaluation: {verdict}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Retrieval evaluation: <b class={verdict}>{verdict}</b></h1>"
        f"<p>{escape(_between(paired))}.</p><p>{escape(verdict_in_words(paired, verdict))}.</p>{paragraphs}"
        f"{''.join(f'<p class=dim>{escape(note)}</p>' for note in notes(paired))}"
        f"<h2>Changes and their 95 % intervals</h2>{forest(comparison.metrics)}"
        f"<div class=wide><table class=stacked><tr>{''.join(f'<th>{name}' for name in _COLUMNS)}</tr>"
        f"{rows}</table></div>{_sides(paired)}{kinds}{worst}"
        f"<p class=dim>Seed {comparison.seed}, {comparison.resamples:,} resamples. {_INTERVALS}. {_P}.</p>"
        "</body></html>\n"
    )


def _sides(paired: PairedRuns) -> str:
    """Return the values of each run: how high a metric is and how it is distributed."""
    rows = ""
    for name, both in sides(paired).items():
        cells = [
            f"<td class=n>{text}</td>"
            for side in both
            for text in (
                f"{number(side.mean, name)} [{number(side.low, name)}, {number(side.high, name)}]",
                number(side.median, name),
                number(side.p95, name),
            )
        ]
        rows += f"<tr><td>{escape(name)}</td><td class=n>{both[0].n:,}</td>{''.join(cells)}</tr>"
    heads = "".join(f"<th>{run}: mean [95 %]<th>median<th>p95" for run in ("baseline", "candidate"))
    table = f"<table><tr><th>metric<th>n{heads}</tr>{rows}</table>"
    return f"<h2>Each run, over the common cases</h2><div class=wide>{table}</div>" if rows else ""


def _row(m: MetricComparison) -> str:
    """Return a metric's row; on a narrow screen each cell is on its own line."""
    kinds = ("" if name in _WORDS else "n" for name in METRIC_COLUMNS)
    cells = ((m.verdict, m.verdict.value), *zip(kinds, metric_cells(m), strict=True))
    shown = zip(_COLUMNS, cells, strict=True)
    row = "".join(f"<td class='{kind}' data-of='{of}'>{escape(text)}</td>" for of, (kind, text) in shown)
    return f"<tr>{row}</tr>"


def forest(metrics: list[MetricComparison]) -> str:
    """Return an SVG with a line for each share's change: interval, mean, zero and threshold.

    Right is better.

    Shares of search paths are left out: no change of theirs is one for the better.
    """
    shares = [each for each in metrics if not each.metric.endswith("_ms") and not each.metric.startswith(PATH)]
    if not shares:
        return ""
    bounds = [sorted((_gain(each, each.interval.low), _gain(each, each.interval.high))) for each in shares]
    worst = max(0.02, *(-low for low, _ in bounds), *(each.rule.threshold for each in shares)) * 1.1
    best = max(0.02, 0.25 * worst, *(high for _, high in bounds)) * 1.1
    left, width, step = 210, 680, 26

    def x(value: float) -> float:
        return left + (value + worst) / (worst + best) * width

    height = step * len(shares) + 40
    parts = [f"<line x1={x(0):.1f} x2={x(0):.1f} y1=10 y2={height - 24} stroke='var(--dim)'/>"]
    for place, (each, (low, high)) in enumerate(zip(shares, bounds, strict=True)):
        y = 24 + place * step
        colour = {Verdict.PASS: "--good", Verdict.FAIL: "--bad", Verdict.INCONCLUSIVE: "--unsure"}[each.verdict]
        parts.append(
            f"<g><title>{escape(each.metric)}: {change(each)}</title>"
            f"<text x={left - 10} y={y + 4} text-anchor=end>{escape(each.metric)}</text>"
            f"<line x1={x(-each.rule.threshold):.1f} x2={x(-each.rule.threshold):.1f} y1={y - 8} y2={y + 8} "
            "stroke='var(--dim)' stroke-dasharray=2 />"
            f"<line x1={x(low):.1f} x2={x(high):.1f} y1={y} y2={y} stroke='var({colour})' stroke-width=3 />"
            f"<circle cx={x(_gain(each, each.delta)):.1f} cy={y} r=5 fill='var({colour})'/></g>"
        )
    parts.append(
        f"<text x={left} y={height - 6}>worse by {worst:.2f}</text>"
        f"<text x={left + width} y={height - 6} text-anchor=end>better by {best:.2f}</text>"
    )
    label = "Change of each metric with its interval; dashed: the change that fails"
    picture = f"<svg class=forest viewBox='0 0 {left + width + 10} {height}' role=img aria-label='{label}'>"
    return f"{picture}{''.join(parts)}</svg><p class=key>{_LEGEND}</p>"


def _gain(each: MetricComparison, value: float) -> float:
    return -value if each.rule.lower_is_better else value


def _types(paired: PairedRuns, metric: str) -> str:
    rows = "".join(
        f"<tr><td>{escape(kind)}</td><td class=n>{count}</td><td class=n>{one:.3f}</td><td class=n>{other:.3f}</td>"
        f"<td class='n {'pass' if other >= one else 'fail'}'>{other - one:+.3f}</td></tr>"
        for kind, (count, one, other) in sorted(paired.by_query_type(metric).items())
    )
    head = "<tr><th>query type<th>cases<th>baseline<th>candidate<th>change</tr>"
    return f"<h2>{escape(metric)} by query type</h2><div class=wide><table>{head}{rows}</table></div>" if rows else ""


def _worst(paired: PairedRuns, metric: str, relevance: dict[str, set[str]] | None) -> str:
    shown = "".join(
        f"<h3>{escape(before.case_id)} <small>{escape(metric)} {delta:+.3f}</small></h3><div class=cols>"
        f"{_ranking('baseline', before, relevance or {})}{_ranking('candidate', after, relevance or {})}</div>"
        for before, after, delta in paired.worst(metric, 10)
    )
    unmarked = "<p class=dim>Give --dataset too, to mark the expected documents here.</p>"
    return f"<h2>Worst cases by {escape(metric)}</h2>{'' if relevance else unmarked}{shown}" if shown else ""


def _ranking(title: str, result: CaseResult, relevance: dict[str, set[str]]) -> str:
    right = relevance.get(result.case_id, set())
    items = "".join(
        f"<li{' class=hit' if document in right else ''}>{escape(document)}</li>" for document in result.retrieved[:10]
    )
    return f"<div><b>{title}</b>{f'<ol>{items}</ol>' if items else '<p class=dim>no results</p>'}</div>"
