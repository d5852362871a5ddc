"""A run in a screenful."""

from typing import TYPE_CHECKING

from assay_cli.errors_of_targets import ERRORS_SHOWN
from assay_cli.terminal import printable

if TYPE_CHECKING:
    from assay_evals.runs import Run


def summary_of(found: "Run") -> str:
    """A run in a screenful."""
    config = found.config
    lines = [
        f"{found.run_id}: {len(found.results):,} cases of {config.dataset} {config.dataset_version}, {len(found.errored)} errored",
        *(
            f"  {name:20} {each.mean:.3f}  [{each.low:.3f}, {each.high:.3f}]  n={each.n}"
            for name, each in found.summary().items()
        ),
        *(f"  {name:20} {value:,.1f}" for name, value in found.latency().items()),
    ]
    if (cached := found.judge_cache).get("calls"):
        saved = f"{cached['hits']:,} of {cached['calls']:,} verdicts kept from before, which saved ${cached['saved_usd']:.4f}"
        lines.append(f"  judge cache: {saved}")
    lines += [f"  errored: {result.case_id}: {result.error}" for result in found.errored[:ERRORS_SHOWN]]
    if (more := len(found.errored) - ERRORS_SHOWN) > 0:
        lines.append(f"  errored: and {more:,} more")
    return "\n".join(map(printable, lines))
