"""One line for a monitored series."""

from typing import Any

from assay_cli.output.terminal import printable


def line(row: dict[str, Any]) -> str:
    """Format the status of a monitored series for people."""
    from assay_operations.drift.charts import share_text

    name = f"{row['project']} {row['metric'] or row['watched']}"
    numbers = "" if row["baseline"] is None else f" baseline {row['baseline']:.3f}"
    if row["last_day"] is not None:
        numbers += f" plain mean of the last day {row['last_day']:.3f} (n = {row['n_last_day']})"
    if row["evidence"] is not None:
        numbers += f" evidence {share_text(row['evidence'])}"
    series = f" [{row['series']}]" if row["series"] else ""
    note = f" ({row['note']})" if row["note"] else ""
    return printable(f"{row['state'].upper():10} {row['watched']:10} {name}{series}{numbers}{note}")
