"""Summary of a LongMemEval run as text for a terminal. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from assay_evals.longmemeval.comparison import Compared
from assay_evals.longmemeval.summary import Share

#: Cut-offs that are shown; the JSON has all.
_SHOWN = (5, 10)


def summary_text(document: Mapping[str, Any], compared: Compared | None = None) -> str:
    """Return the summary: accuracy and recall by type, retrieval metrics, and the comparison."""
    return "\n".join(
        [*_head(document), *_accuracy(document), *_recall(document), *_retrieval(document), *_change(compared)]
    )


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    dataset = document["dataset"]
    yield (
        f"{dataset['name']}: {document['questions']:,} questions, {document['errors']:,} errors, {document['unjudged']:,} unjudged; "
        f"memory {document['target']}, {document['top_k']} sessions requested"
    )
    if quirks := ", ".join(f"{count:,} {name}" for name, count in dataset["quirks"].items()):
        yield f"  in the file: {quirks}"
    if unknown := document["unknown_results"]:
        yield f"  {unknown:,} results name no session of their history: the target must return the session_id that it received"


def _accuracy(document: Mapping[str, Any]) -> Iterator[str]:
    accuracy = document["accuracy"]
    if accuracy is None:
        return
    judge = document["judge"]
    who = "no judge" if judge is None else " and ".join(judge["models"])
    if judge is not None and judge["offline_baseline"]:
        who = "the offline baseline, which compares words and not meaning: no measure of quality"
    elif judge is not None and not judge["comparable_with_published"]:
        who += "; not comparable with published figures"
    yield f"accuracy by {who}"
    yield from _shares(
        [*accuracy["by_type"].items(), ("all questions", accuracy["overall"]), ("abstention", accuracy["abstention"])]
    )
    yield f"  {'mean of types':26} {'':13} {accuracy['task_averaged']:.3f}"


def _recall(document: Mapping[str, Any]) -> Iterator[str]:
    recall = document["recall"]
    if not recall["aggregate"]["total"]:
        return
    yield f"a session with evidence among the first {document['top_k']}"
    yield from _shares([*recall["recall_by_type"].items(), ("all types", recall["aggregate"])])


def _shares(shares: list[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    for name, each in shares:
        if not each["total"]:
            continue
        right = each.get("right", each.get("hit"))
        counts = f"{right:,} of {each['total']:,}"
        line = f"  {name:26} {counts:>13} {each['rate']:.3f}  [{each['low']:.3f}, {each['high']:.3f}]"
        others = each["without_errors"]
        if each["errors"]:
            line += f"  {each['errors']:,} errors, without them " + (
                "nothing" if others is None else f"{others['rate']:.3f}"
            )
        yield line


def _retrieval(document: Mapping[str, Any]) -> Iterator[str]:
    conventions = (
        ("reference", "the benchmark's metrics", ("recall_any", "recall_all", "ndcg_any")),
        ("standard", "standard metrics", ("recall", "ndcg")),
    )
    for convention, title, names in conventions:
        if (means := document["retrieval"][convention]) is None:
            continue
        yield f"{title}, over {means['questions']:,.0f} questions"
        cutoffs = [k for k in _SHOWN if f"{names[0]}@{k}" in means] or [document["top_k"]]
        for k in cutoffs:
            yield "  " + "  ".join(f"{name}@{k} {means[f'{name}@{k}']:.3f}" for name in names)
        if "mrr" in means:
            yield f"  mrr {means['mrr']:.3f}"


def _change(compared: Compared | None) -> Iterator[str]:
    if compared is None:
        return
    yield (
        f"compared on {compared.questions:,} questions; {compared.only_baseline:,} only in the baseline, "
        f"{compared.only_run:,} only in this run"
    )
    for name, each in compared.changes.items():
        changed = each.gained + each.lost > 0  # otherwise the bootstrap shows no uncertainty
        low, high = (each.low, each.high) if changed else (each.bounded_low, each.bounded_high)
        yield (
            f"  {name:15} {each.baseline:.3f} -> {each.run:.3f}  {each.change:+.3f} [{low:+.3f}, {high:+.3f}]  "
            f"p={each.p_value:.4f} ({each.test}), Holm {each.p_holm:.4f}; {each.gained:,} better, {each.lost:,} worse of {each.n:,}"
        )
    yield from (f"  {note}" for note in compared.notes)


def floor_text(name: str, each: Share, floor: float) -> str:
    """Return the line on a type below the floor."""
    return f"{name}: recall {each.right / each.total:.3f} ({each.right:,} of {each.total:,}) is below --by-type-floor {floor:g}"
