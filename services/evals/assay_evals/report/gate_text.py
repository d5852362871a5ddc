"""Report the verdict of a gate as text: measurements, and the thresholds that were missed. Pure."""

from typing import Any

from assay_schema.printable import printable

_SHOWN = (
    "mean_jaccard", "top1_stability_rate", "latency_multiplier", "mean_recall_at_k", "first_relevant_hit_rate", "expected_top1_hit_rate",
)  # fmt: skip


def gate_text(verdict: dict[str, Any]) -> str:
    """Format a verdict for people: each gate, its measurements, and the thresholds that were missed."""
    lines = []
    for name, part in (("regression", verdict["regression_gate"]), ("correctness", verdict["correctness_gate"])):
        if not part["ran"]:
            continue
        summary = part["summary"]
        unasked = {"expected_top1_hit_rate"} if not summary.get("expected_top1_denominator") else set()
        unasked |= set(_SHOWN) if not (summary.get("rows_replayed") or summary.get("queries_run")) else set()
        figures = ", ".join(
            f"{key} {'-' if key in unasked else _figure(summary[key])}" for key in _SHOWN if key in summary
        )
        lines.append(f"{name}: {_state(part)}   {figures}")
        lines += [_beside(each) for each in part["breaches"]]
        lines += [f"{_beside(each)}{_too_few(each)}" for each in part["undecided"]]
        if scrubbed := part.get("scrubbed", {}).get("rows_replayed"):
            apart = ", ".join(f"{key} {_figure(part['scrubbed'][key])}" for key in _SHOWN if key in part["scrubbed"])
            lines.append(f"  counted separately, since personal data was removed: {scrubbed:,} row(s), {apart}")
        if part["breaches"]:
            lines += _missed(part)
    lines += _by_rules(verdict["rules_gate"]) if "rules_gate" in verdict else []
    lines += [verdict["error"]] if "error" in verdict else []
    return "\n".join(map(printable, [*lines, _closing(verdict)]))


def _closing(verdict: dict[str, Any]) -> str:
    """Return the verdict with the measurements that decided it."""
    parts = [verdict[name] for name in ("regression_gate", "correctness_gate", "rules_gate") if name in verdict]
    for kind, what in (("breaches", "breached"), ("undecided", "inconclusive")):
        names = list(dict.fromkeys(each["metric"] for part in parts for each in part.get(kind, ())))
        if names and verdict["verdict"] != "pass":
            return f"verdict: {verdict['verdict']}, because of {what}: {', '.join(names)}"
    return f"verdict: {verdict['verdict']}"


def _by_rules(part: dict[str, Any]) -> list[str]:
    """Format the results of scorers and floors."""
    summary = part["summary"]
    figures = [f"{name} {_figure(each['mean'])}" for name, each in summary["metrics"].items()]
    counted = f"answers {summary['answers'] - summary['without_answer']:,} of {summary['answers']:,}"
    lines = [f"rules: {_state(part)}   {', '.join([counted, *figures])}"]
    lines += [_beside(each) for each in (*part["breaches"], *part["undecided"])]
    lines += [f"{_beside(each)} (does not block)" for each in part["warnings"]]
    lines += [f"  {part['note']}"] if part["note"] and not part["breaches"] else []
    if scrubbed := summary["rows_scrubbed"]:
        lines.append(f"  not scored, since personal data was removed: {scrubbed:,} row(s)")
    return lines


def _state(part: dict[str, Any]) -> str:
    return "FAIL" if part["breaches"] else "inconclusive" if part["undecided"] else "pass"


def _beside(each: dict[str, Any]) -> str:
    """Format a measurement with its interval and its threshold."""
    between = "[{:.3f}, {:.3f}] ".format(*each["interval"]) if "interval" in each else ""
    reasons = "".join(f"   {each[key]}" for key in ("error_tail", "reason") if each.get(key))
    observed, least = _figure(each.get("observed")), _figure(each.get("threshold"))
    return f"  {each['metric']}: {observed} {between}against a threshold of {least}{reasons}"


def _too_few(each: dict[str, Any]) -> str:
    if "interval" not in each:
        return ""
    if not each["cases_needed"]:
        return ": too close to the threshold for a verdict"
    return f": too few rows for a verdict, about {each['cases_needed']:,} needed"


def _missed(part: dict[str, Any]) -> list[str]:
    """List the queries behind a breach: the relevant results that are missing, and the first result."""
    lines = []
    for miss in part.get("missed", ()):
        more = miss["missing_total"] - len(miss["missing"])
        missing = ", ".join(miss["missing"]) + (f" and {more} more" if more else "")
        details = [f"recall {_figure(miss['recall_at_k'])}"]
        details += [f"missing {missing}"] if missing else []
        details.append(f"first {miss['first']}" if miss["first"] else "no results")
        details += [f"expected first {miss['expected_top1']}"] if miss["expected_top1"] else []
        lines.append(f"  {miss['query_id']}: {'; '.join(details)}")
        lines += [f"    {miss['hint']}"] if miss["hint"] else []
    left = part.get("missed_total", 0) - len(part.get("missed", ()))
    return [*lines, f"  and {left:,} more question(s) with missing results"] if left else lines


def _figure(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "-" if value is None else str(value)
