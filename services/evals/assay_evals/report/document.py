"""Report a comparison as a JSON document. Pure."""

from dataclasses import asdict
from typing import Any

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.sides import sides
from assay_evals.compare.verdicts import Verdict
from assay_evals.report.wording import verdict_in_words
from assay_evals.run.model import VERSION


def as_json(paired: PairedRuns, verdict: Verdict) -> dict[str, Any]:
    """Return the comparison as a document."""
    comparison = paired.comparison
    both = sides(paired)
    return {
        "schema_version": VERSION,
        "verdict": verdict.value,
        "verdict_in_words": verdict_in_words(paired, verdict),
        "baseline": {"run_id": paired.baseline.run_id, "label": paired.baseline.config.label},
        "candidate": {"run_id": paired.candidate.run_id, "label": paired.candidate.config.label},
        "paired": comparison.paired,
        "only_baseline": comparison.only_baseline,
        "only_candidate": comparison.only_candidate,
        "errored": comparison.errored,
        "unlike": comparison.unlike,
        "metrics_only_baseline": comparison.metrics_only_baseline,
        "metrics_only_candidate": comparison.metrics_only_candidate,
        "unpaired": comparison.unpaired,
        "shrunk": [asdict(each) for each in comparison.shrunk],
        "seed": comparison.seed,
        "resamples": comparison.resamples,
        "metrics": [
            asdict(each)
            | {
                "delta_percent": each.delta_percent,
                "is_regression": each.is_regression,
                "is_improvement": each.is_improvement,
                "is_statistically_significant": each.significant,
                "p": each.p,
            }
            for each in comparison.metrics
        ],
        "sides": {name: {"baseline": asdict(one), "candidate": asdict(other)} for name, (one, other) in both.items()},
        "slices": [asdict(each) for each in paired.checks],
        "slice_changes": [asdict(each) for each in paired.changes],
    }
