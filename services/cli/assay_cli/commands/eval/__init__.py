"""`assay eval`."""

from assay_cli.lazy import lazy_group

eval = lazy_group(  # noqa: A001  (named like its command)
    "Run, list, show and compare evaluations over golden datasets.",
    {
        "run": f"{__name__}.run:run",
        "store": f"{__name__}.show:store",
        "show": f"{__name__}.show:show",
        "compare": f"{__name__}.compare:compare",
        "list": f"{__name__}.runs:list_runs",
        "import": f"{__name__}.runs:import_run",
        "export": f"{__name__}.runs:export_run",
        "report": f"{__name__}.report:report",
        "cross-modal": f"{__name__}.cross_modal:cross_modal",
        "nightly": f"{__name__}.nightly:nightly",
        "longmemeval": f"{__name__}.longmemeval:longmemeval",
        "contradictions": f"{__name__}.contradictions:contradictions",
    },
)
