"""`assay dataset`."""

from assay_cli.lazy import lazy_group

group = lazy_group(
    "Golden datasets: questions with what a good system retrieves and says.",
    {
        "validate": f"{__name__}.check:validate",
        "stats": f"{__name__}.check:stats",
        "diff": f"{__name__}.check:diff",
        "merge": f"{__name__}.check:merge",
        "mine": f"{__name__}.mine:mine",
        "generate": f"{__name__}.generate:generate",
        "import": f"{__name__}.review:import_dataset",
        "review": f"{__name__}.review:review",
        "release": f"{__name__}.review:release",
    },
)
