"""A gate's verdict in words."""

from typing import Any

from assay_cli.output.terminal import printable

_SHOWN = (
    "mean_jaccard", "top1_stability_rate", "latency_multiplier", "mean_recall_at_k", "first_relevant_hit_rate", "expected_top1_hit_rate",
)  # fmt: skip


def in_words(verdict: dict[str, Any]) -> str:
    """What a person reads of a verdict: each gate, what it measured, and what is beside its threshold."""
    lines = []
    for name, part in (("regression", verdict["regression_gate"]), ("correctness", verdict["correctness_gate"])):
        if not part["ran"]:
            continue
        summary = part["summary"]
        unasked = {"expected_top1_hit_rate"} if not summary.get("expected_top1_denominator") else set()
        figures = ", ".join(
            f"{key} {'-' if key in unasked else _figure(summary[key])}" for key in _SHOWN if key in summary
        )
        lines.append(f"{name}: {_state(part)}   {figures}")
        lines += [_beside(each) for each in part["breaches"]]
        lines += [f"{_beside(each)}{_too_few(each)}" for each in part["undecided"]]
        if scrubbed := part.get("scrubbed", {}).get("rows_replayed"):
            apart = ", ".join(f"{key} {_figure(part['scrubbed'][key])}" for key in _SHOWN if key in part["scrubbed"])
            lines.append(f"  counted apart, since personal data was taken out: {scrubbed:,} row(s), {apart}")
        if part["breaches"]:
            lines += _missed(part)
    lines += _by_rules(verdict["rules_gate"]) if "rules_gate" in verdict else []
    return "\n".join(map(printable, [*lines, f"verdict: {verdict['verdict']}"]))


def _by_rules(part: dict[str, Any]) -> list[str]:
    """What scorers and floors say of the answers."""
    summary = part["summary"]
    figures = [f"{name} {_figure(each['mean'])}" for name, each in summary["metrics"].items()]
    counted = f"answers {summary['answers'] - summary['without_answer']:,} of {summary['answers']:,}"
    lines = [f"rules: {_state(part)}   {', '.join([counted, *figures])}"]
    lines += [_beside(each) for each in (*part["breaches"], *part["undecided"])]
    lines += [f"{_beside(each)} (does not block)" for each in part["warnings"]]
    lines += [f"  {part['note']}"] if part["note"] and not part["breaches"] else []
    if scrubbed := summary["rows_scrubbed"]:
        lines.append(f"  not scored, since personal data was taken out: {scrubbed:,} row(s)")
    return lines


def _state(part: dict[str, Any]) -> str:
    return "FAIL" if part["breaches"] else "cannot tell" if part["undecided"] else "pass"


def _beside(each: dict[str, Any]) -> str:
    """What was measured, with its interval, and what it is held against."""
    between = "[{:.3f}, {:.3f}] ".format(*each["interval"]) if "interval" in each else ""
    told = "".join(f"   {each[key]}" for key in ("error_tail", "reason") if each.get(key))
    observed, least = _figure(each.get("observed")), _figure(each.get("threshold"))
    return f"  {each['metric']}: {observed} {between}beside a threshold of {least}{told}"


def _too_few(each: dict[str, Any]) -> str:
    if "interval" not in each:
        return ""
    return f": too few to tell, about {each['cases_needed']:,} would" if each["cases_needed"] else ": too close to tell"


def _missed(part: dict[str, Any]) -> list[str]:
    """The questions behind a breach: what is right and did not come back, and what came first."""
    lines = []
    for miss in part.get("missed", ()):
        more = miss["missing_total"] - len(miss["missing"])
        missing = ", ".join(miss["missing"]) + (f" and {more} more" if more else "")
        told = [f"recall {_figure(miss['recall_at_k'])}"]
        told += [f"missing {missing}"] if missing else []
        told.append(f"first {miss['first']}" if miss["first"] else "nothing came back")
        told += [f"expected first {miss['expected_top1']}"] if miss["expected_top1"] else []
        lines.append(f"  {miss['query_id']}: {'; '.join(told)}")
        lines += [f"    {miss['hint']}"] if miss["hint"] else []
    left = part.get("missed_total", 0) - len(part.get("missed", ()))
    return [*lines, f"  and {left:,} more question(s) that missed something"] if left else lines


def _figure(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "-" if value is None else str(value)
