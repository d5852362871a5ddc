"""`assay sessions`."""

from assay_cli.lazy import lazy_group

sessions = lazy_group(
    "Import, list, show, export, check and judge the sessions of agents.",
    {
        "import": f"{__name__}.import_sessions:import_logs",
        "list": f"{__name__}.show:list_sessions",
        "show": f"{__name__}.show:show",
        "export": f"{__name__}.export:export",
        "check": f"{__name__}.check:check",
        "judge": f"{__name__}.judge:judge",
    },
)
