"""`assay dataset`."""

from assay_cli.lazy import lazy_group

dataset = lazy_group(
    "Check, build, review and release golden datasets: queries with relevant results and expected answers.",
    {
        "validate": f"{__name__}.check:validate",
        "stats": f"{__name__}.check:stats",
        "diff": f"{__name__}.check:diff",
        "merge": f"{__name__}.check:merge",
        "mine": f"{__name__}.mine:mine",
        "export": f"{__name__}.export:export",
        "generate": f"{__name__}.generate:generate",
        "import": f"{__name__}.review:import_dataset",
        "review": f"{__name__}.review:review",
        "release": f"{__name__}.review:release",
    },
)
