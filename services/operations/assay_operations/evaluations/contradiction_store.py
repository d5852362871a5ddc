"""Store runs that judged pairs for contradictions, and read the findings of earlier ones.

`evaluator` writes them. Of pairs, it reads ids and verdicts, to recognize findings, but no text; of labels, no note and no name.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.time_bounds import iso

if TYPE_CHECKING:
    from assay_evals.contradictions.findings import History, State
    from assay_evals.contradictions.report import Facts, Result

#: Rows sent to the store at a time, and findings in pairs of earlier runs that are read.
BATCH_ROWS, KNOWN_MOST = 500, 100_000

#: When each pair with a finding was last missing among what its question retrieved, in a project.
MISSED = """
SELECT pair_key, max(started_at) AS at
FROM (SELECT arrayJoin(pairs_gone) AS pair_key, started_at FROM contradiction_runs WHERE project = {project:String})
GROUP BY pair_key
"""

#: A run whose row is missing was not stored whole: its pairs do not count.
_KNOWN = f"""
WITH
    stored AS (SELECT run_id FROM contradiction_runs WHERE project = {{project:String}}),
    found AS
    (
        SELECT finding_id, pair_key, argMax(pair_id, (started_at, run_id)) AS last_pair,
            argMax(query_key, (started_at, run_id)) AS question, argMax(run_id, (started_at, run_id)) AS last_run, max(started_at) AS seen
        FROM contradiction_pairs
        WHERE project = {{project:String}} AND finding_id != '' AND run_id GLOBAL IN (SELECT run_id FROM stored)
        GROUP BY finding_id, pair_key
    ),
    judged AS
    (
        SELECT pair_key, max(started_at) AS at FROM contradiction_pairs
        WHERE project = {{project:String}} AND verdict != 'uncertain' AND run_id GLOBAL IN (SELECT run_id FROM stored)
        GROUP BY pair_key
    ),
    missed AS ({MISSED}),
    runs AS (SELECT run_id, sampling, scope FROM contradiction_runs WHERE project = {{project:String}})
SELECT finding_id, last_pair, found.pair_key, toUnixTimestamp64Milli(seen) AS seen_ms,
    toUnixTimestamp64Milli(greatest(judged.at, seen)) AS judged_ms, toUnixTimestamp64Milli(missed.at),
    found.question, runs.sampling, runs.scope
FROM found
GLOBAL LEFT JOIN judged ON judged.pair_key = found.pair_key
GLOBAL LEFT JOIN missed ON missed.pair_key = found.pair_key
GLOBAL LEFT JOIN runs ON runs.run_id = found.last_run
ORDER BY seen_ms DESC, finding_id, found.pair_key LIMIT {KNOWN_MOST}
"""  # noqa: S608  # a constant

#: In each pair with a finding, the latest label of any person decides, also that of an earlier run.
_REFUTED = f"""
SELECT of.finding_id, of.pair_key
FROM (SELECT result_id, label, labelled_at FROM contradiction_labels WHERE project = {{project:String}}) AS l
GLOBAL INNER JOIN
(
    SELECT result_id, finding_id, pair_key FROM contradiction_pairs WHERE project = {{project:String}} AND finding_id != ''
) AS of ON of.result_id = l.result_id
WHERE l.label != 'skip'
GROUP BY of.finding_id, of.pair_key HAVING argMax(l.label, l.labelled_at) = 'refute'
ORDER BY of.finding_id, of.pair_key LIMIT {KNOWN_MOST}
"""  # noqa: S608  # a constant


def expect_store(data: Path) -> None:
    """Raise `OperationError` unless the identity that will write may: it inserts no row."""
    from clickhouse_connect.driver.exceptions import ProgrammingError

    from assay_runtime.store import INSERT_SETTINGS

    settings = settings_for("evaluator", data).store
    with open_store(settings) as client:
        for table in ("contradiction_pairs", "contradiction_runs"):
            try:
                client.raw_insert(
                    f"{settings.base_database}.{table}", insert_block=b"\n", fmt="JSONEachRow", settings=INSERT_SETTINGS
                )
            except ProgrammingError:  # settings that a reader cannot set
                raise OperationError(
                    "refused", f"the store's user {settings.user} cannot insert; `evaluator` can"
                ) from None


def known_findings(data: Path, project: str) -> "History":
    """Return the findings of earlier runs of a project, and the pairs in which people refuted them."""
    from assay_evals.contradictions.findings import History, Known

    with open_store(settings_for("evaluator", data).store) as client:
        rows = client.query(_KNOWN, parameters={"project": project}).result_rows
        refuted = client.query(_REFUTED, parameters={"project": project}).result_rows
    return History(
        (
            Known(
                str(name),
                str(pair),
                str(key),
                _moment(seen),
                _moment(judged),
                _moment(missed) if missed else None,
                str(query),
                (str(sampling), str(scope)),
            )
            for name, pair, key, seen, judged, missed, query, sampling, scope in rows
        ),
        refuted=((str(name), str(key)) for name, key in refuted),
    )


def result_id(run_id: str, pair_id: str) -> uuid.UUID:
    """Return the identity of a pair in a run."""
    return uuid.uuid5(uuid.UUID(run_id), pair_id)


def store_run(
    data: Path,
    facts: "Facts",
    results: "Sequence[Result]",
    states: "Mapping[str, State]",
    report: Mapping[str, Any],
    captured_at: Mapping[str, datetime],
    gone: Collection[str] = (),
) -> None:
    """Write a run: its pairs, then its row, so that a visible run has all of its pairs.

    `gone`: keys of pairs with an open finding that their question no longer retrieves.

    Raises `OperationError`.
    """
    from assay_runtime.store import insert_json_rows

    settings = settings_for("evaluator", data).store
    with open_store(settings) as client:
        for start in range(0, len(results), BATCH_ROWS):
            rows = [
                orjson.dumps(_pair_row(facts, place, each, states, captured_at)) + b"\n"
                for place, each in enumerate(results[start : start + BATCH_ROWS], start=start)
            ]
            insert_json_rows(client, f"{settings.base_database}.contradiction_pairs", b"".join(rows), len(rows))
        row = orjson.dumps({**_run_row(facts, results, report), "pairs_gone": sorted(gone)})
        insert_json_rows(client, f"{settings.base_database}.contradiction_runs", row, 1)


def _pair_row(
    facts: "Facts", place: int, result: "Result", states: "Mapping[str, State]", captured_at: Mapping[str, datetime]
) -> dict[str, Any]:
    from assay_evals.contradictions.judging import Severity
    from assay_evals.contradictions.pairs import query_key

    pair, opinion = result.pair, result.opinion
    state = states.get(result.finding_id)
    return {
        "schema_version": 1,
        "result_id": str(result_id(facts.run_id, pair.pair_id)),
        "run_id": facts.run_id,
        "project": facts.project,
        "started_at": iso(facts.started_at),
        "created_at": iso(captured_at.get(pair.query, facts.started_at)),
        "place": place,
        "pair_id": pair.pair_id,
        "pair_key": pair.key,
        "query_key": query_key(pair.query),
        "query": _stored(pair.query),
        "documents": [_stored(pair.first.id), _stored(pair.second.id)],
        "texts": [_stored(pair.first.text), _stored(pair.second.text)],
        "stratum": pair.stratum.value,
        "probability": pair.probability,
        "verdict": None if opinion is None else opinion.verdict.value,
        "severity": (opinion.severity if opinion and result.is_finding else Severity.INFO).value,
        "confidence": None if opinion is None else opinion.confidence,
        "claims": [_stored(claim) for claim in opinion.claims] if opinion and result.is_finding else [],
        "reason": _stored(opinion.reason) if opinion else "",
        "judge_error": result.error,
        "finding_id": result.finding_id,
        "state": state.value if state else "",
    }


def _run_row(facts: "Facts", results: "Sequence[Result]", report: Mapping[str, Any]) -> dict[str, Any]:
    from assay_evals.contradictions.report import without_texts

    rates = {
        f"{column}{end}": report["rates"][name][field]
        for column, name in (("rate", "pairs"), ("query_rate", "queries"))
        for end, field in (("", "estimate"), ("_low", "lower"), ("_high", "upper"))
    }
    return {
        "schema_version": 1,
        "run_id": facts.run_id,
        "project": facts.project,
        "started_at": iso(facts.started_at),
        "completed_at": iso(facts.completed_at),
        "status": report["run_status"],
        "prompt": facts.series.prompt,
        "model": facts.series.model,
        "sampling": facts.series.sampling,
        "scope": facts.series.scope,
        "queries": report["queries"],
        "intended": len(results),
        "judged": report["pairs_judged"],
        "judge_errors": report["judge_errors"]["total"],
        "contradictions": report["total_contradictions_flagged"],
        "cost_usd": facts.cost_usd,
        "summary": orjson.dumps(without_texts(report)).decode(),
        **rates,
    }


def _stored(text: str) -> str:
    return text.encode(errors="replace").decode()  # a lone surrogate, which the store cannot contain


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
