"""`assay judge status|cost|show`: counts of judged answers, their cost, and the verdict on one."""

from typing import Annotated

import orjson
import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import AsJson, DataDirectory
from assay_cli.output.rows import show_rows
from assay_cli.output.terminal import echo, emit
from assay_operations.clients import DEFAULT_DATA, settings_for
from assay_operations.doctor.quality_checks import JUDGE_ERRORS_MOST
from assay_operations.judging.answer import judged_answer
from assay_operations.judging.status import COST, STATUS, rows_since


def status(
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago or an ISO 8601 time.")] = "1d",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Count judged answers by status, project and judge.

    Exit code 1 if more than 5 % of the sampled answers ended in an error.
    """
    rows = rows_since(settings_for("sre", data), STATUS, since)
    show_rows(rows, as_json, f"no answer was judged (--since {since}); `assay doctor` shows whether the judge runs")
    if any(row["judge_error"] > JUDGE_ERRORS_MOST * row["sampled"] for row in rows):
        raise typer.Exit(FINDING)


def cost(
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago or an ISO 8601 time.")] = "30d",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show the cost of judging by day, project and model."""
    show_rows(rows_since(settings_for("sre", data), COST, since), as_json, "nothing was spent")


def show(
    event_id: Annotated[str, typer.Argument(help="event_id of the answer.")],
    fingerprint: Annotated[str, typer.Option(help="Fingerprint of the judge; default: the latest.")] = "",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show the verdict on an answer sentence by sentence, with the supporting or contradicting passages."""
    from assay_cli.output.evidence import as_text
    from assay_operations.judging.evidence import sentences_of

    row = judged_answer(settings_for("sre", data), event_id, fingerprint)
    shown = sentences_of(row)
    if as_json:
        kept = {
            name: row[name] for name in ("event_id", "project", "status", "fingerprint", "detail", "claims", "metrics")
        }
        emit(orjson.dumps(kept | {"sentences": shown}, default=str).decode())
    else:
        echo(as_text(row, shown))
