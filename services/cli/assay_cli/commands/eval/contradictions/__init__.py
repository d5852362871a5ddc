"""`assay eval contradictions`."""

from assay_cli.lazy import lazy_group

contradictions = lazy_group(
    "Measure how often retrieved documents contradict each other, follow the rate, and review findings.",
    {
        "run": f"{__name__}.run:run",
        "trend": f"{__name__}.trend:trend",
        "review": f"{__name__}.review:review",
    },
)
