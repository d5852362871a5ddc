"""Statuses and costs of judged answers and sessions."""

import time
from typing import Any

from assay_operations.clients import open_store
from assay_operations.time_bounds import moment_ms
from assay_schema.settings import Settings

STATUS = """
SELECT project, if(session_id IS NULL, 'answer', 'session') AS kind, backend, model, fingerprint,
    countIf(status != 'not_sampled') AS sampled, countIf(status = 'scored') AS scored,
    countIf(status = 'abstained') AS abstained, countIf(status = 'no_context') AS no_context,
    countIf(status = 'judge_error') AS judge_error, countIf(status = 'skipped_budget') AS skipped_budget,
    countIf(status = 'not_sampled') AS not_sampled,
    round(avgIf(metrics['faithfulness'], base AND status = 'scored' AND kind = 'answer'), 4) AS faithfulness,
    round(avgIf(metrics['rubric_score'], base AND status = 'scored' AND kind = 'session'), 4) AS rubric_score,
    max(judged_at) AS last_judged
FROM scores WHERE judged_at >= fromUnixTimestamp64Milli({since:Int64})
GROUP BY project, kind, backend, model, fingerprint ORDER BY project, kind
"""
COST = """
SELECT day, project, backend, model, judged, skipped_budget, round(cost_usd, 6) AS cost_usd, input_tokens, output_tokens
FROM judge_spend WHERE day >= toDate(fromUnixTimestamp64Milli({since:Int64})) ORDER BY day DESC, project
"""


def since_ms(text: str) -> int:
    """Parse the start of a period into Unix milliseconds."""
    return moment_ms(text, int(time.time() * 1000), "--since")


def rows_since(settings: Settings, sql: str, since: str) -> list[dict[str, Any]]:
    """Return the rows of a query from the start of a period."""
    with open_store(settings.store) as store:
        return [dict(row) for row in store.query(sql, parameters={"since": since_ms(since)}).named_results()]
