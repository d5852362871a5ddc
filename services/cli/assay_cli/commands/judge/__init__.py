"""`assay judge`."""

from assay_cli.lazy import lazy_group

judge = lazy_group(
    "Show how answers are judged and what it costs, calibrate the judge, and re-judge answers.",
    {
        "status": f"{__name__}.status:status",
        "cost": f"{__name__}.status:cost",
        "show": f"{__name__}.status:show",
        "calibrate": f"{__name__}.calibrate:calibrate",
        "rejudge": f"{__name__}.rejudge:rejudge",
        "label": f"{__name__}.label:label",
        "agreement": f"{__name__}.label:agreement",
    },
)
