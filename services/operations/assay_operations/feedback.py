"""User feedback on answers and retrievals."""

from pathlib import Path
from typing import Any

from assay_operations.clients import open_store, settings_for

_SUMMARY = """SELECT day, project, service, kind, positive, negative, events, with_text, people
FROM feedback_by_day
WHERE day >= toDate(now() - toIntervalSecond({seconds:UInt64}))
  AND ({project:String} = '' OR project = {project:String})
ORDER BY day DESC, project, service, kind"""


def summary(data: Path, *, seconds: int, project: str = "") -> list[dict[str, Any]]:
    """Count feedback by day, project, service and kind of the judged event."""
    with open_store(settings_for("sre", data).store) as client:
        answer = client.query(_SUMMARY, parameters={"seconds": seconds, "project": project})
    return [dict(zip(answer.column_names, row, strict=True)) for row in answer.result_rows]
