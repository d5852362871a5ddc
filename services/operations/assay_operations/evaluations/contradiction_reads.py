"""Read stored runs of contradictions: the trend, findings to review, and pairs to label."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.actor import Actor, scrubbed_words
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.evaluations.contradiction_store import MISSED
from assay_operations.events.filters import OPEN_END_MS
from assay_operations.time_bounds import iso
from assay_schema.ids import new_event_id

if TYPE_CHECKING:
    from assay_evals.contradictions.rate import JudgedPair
    from assay_evals.contradictions.trend import Point, Trend
    from assay_runtime.store import Client

RUNS_MOST, FINDINGS_MOST = 1_000, 10_000
NOTE_CHARS = 2_000


class Outcome(StrEnum):
    """Outcome of judging a pair; labels are drawn within each."""

    CONTRADICTION = "contradiction"
    ERROR = "error"
    OTHER = "other"


#: Outcomes that are rare, and that most errors of the rate are of: every fifth pair of a queue is of the first, every fifth of the second.
RARE, FIFTH = (Outcome.CONTRADICTION, Outcome.ERROR), 5

_RUNS = """
SELECT toString(run_id) AS run_id, toUnixTimestamp64Milli(started_at) AS started, toString(status) AS status, prompt, model, sampling,
    scope, rate, rate_low, rate_high, query_rate, query_rate_low, query_rate_high, intended, judged, judge_errors, contradictions,
    cost_usd, summary
FROM contradiction_runs
WHERE project = {project:String} AND started_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    AND started_at < fromUnixTimestamp64Milli({until:Int64}, 'UTC')
ORDER BY started_at DESC, run_id LIMIT {most:UInt32}
"""  # constants

#: Runs with labels that correct their rate.
_LABELLED = """
SELECT DISTINCT toString(run_id) FROM contradiction_labels WHERE project = {project:String} AND isNotNull(probability)
"""

#: The label of a pair is that of most people; None if as many confirm as refute.
_PAIRS = """
SELECT toString(p.result_id) AS result_id, p.pair_id AS pair_id, p.query AS query, p.documents AS documents, toString(p.stratum) AS stratum,
    p.probability AS probability, toString(p.verdict) AS verdict, p.judge_error != '' AS failed, l.confirmed AS confirmed,
    l.refuted AS refuted, l.skipped AS skipped
FROM contradiction_pairs AS p
GLOBAL LEFT JOIN
(
    SELECT result_id, countIf(label = 'confirm') AS confirmed, countIf(label = 'refute') AS refuted, countIf(label = 'skip') AS skipped
    FROM contradiction_labels
    WHERE project = {project:String} AND run_id = {run:UUID} AND isNotNull(probability)
    GROUP BY result_id
) AS l ON l.result_id = p.result_id
WHERE p.project = {project:String} AND p.run_id = {run:UUID}
ORDER BY p.place
"""

#: A finding may be in several pairs: it is open while one of them has it that no person refuted, else refuted while one has it, else gone
#: if one is no longer retrieved, else resolved. It is shown in the newest pair of its state, with the number and the documents of
#: these pairs.
_FINDINGS = f"""
WITH
    stored AS (SELECT run_id FROM contradiction_runs WHERE project = {{project:String}}),
    judged AS
    (
        SELECT pair_key, max(started_at) AS at FROM contradiction_pairs
        WHERE project = {{project:String}} AND verdict != 'uncertain' AND run_id GLOBAL IN (SELECT run_id FROM stored)
        GROUP BY pair_key
    ),
    missed AS ({MISSED}),
    labels AS
    (
        SELECT of.finding_id AS finding_id, of.pair_key AS pair_key, argMax(toString(l.label), l.labelled_at) AS label
        FROM contradiction_labels AS l
        GLOBAL INNER JOIN
        (
            SELECT result_id, finding_id, pair_key FROM contradiction_pairs
            WHERE project = {{project:String}} AND finding_id != ''
        ) AS of ON of.result_id = l.result_id
        WHERE l.project = {{project:String}} AND l.label != 'skip'
        GROUP BY finding_id, pair_key
    )
SELECT finding_id, shown.1 AS pair_id, shown.2 AS run_id, toUnixTimestamp64Milli(seen_at) AS seen, shown.3 AS query, shown.4 AS documents,
    shown.5 AS claims, shown.6 AS reason, shown.7 AS verdict, toString(shown.8) AS severity, shown.9 AS confidence, shown.10 AS state,
    ended, multiIf(refuted, 'refute', confirmed, 'confirm', '') AS label, pairs, all_documents
FROM
(
    SELECT s.finding_id AS finding_id,
        multiIf(judged.at > s.started_at, 'resolved', missed.at > s.started_at, 'gone', '') AS ended,
        labels.label = 'refute' AS refuted, max(labels.label = 'confirm') AS confirmed, max(s.started_at) AS seen_at, count() AS pairs,
        arraySort(groupUniqArrayArray(s.documents)) AS all_documents,
        argMin(
            tuple(
                s.pair_id, toString(s.run_id), s.query, s.documents, s.claims, s.reason, toString(s.verdict), s.severity, s.confidence,
                toString(s.state)
            ),
            (-toUnixTimestamp64Milli(s.started_at), s.place)
        ) AS shown
    FROM
    (
        SELECT * FROM contradiction_pairs
        WHERE project = {{project:String}} AND finding_id != '' AND run_id GLOBAL IN (SELECT run_id FROM stored)
        ORDER BY started_at DESC, place LIMIT 1 BY finding_id, pair_key
    ) AS s
    GLOBAL LEFT JOIN judged ON judged.pair_key = s.pair_key
    GLOBAL LEFT JOIN missed ON missed.pair_key = s.pair_key
    GLOBAL LEFT JOIN labels ON labels.finding_id = s.finding_id AND labels.pair_key = s.pair_key
    GROUP BY finding_id, ended, refuted
    ORDER BY ended, refuted LIMIT 1 BY finding_id
)
WHERE seen_at >= fromUnixTimestamp64Milli({{since:Int64}}, 'UTC') AND seen_at < fromUnixTimestamp64Milli({{until:Int64}}, 'UTC')
ORDER BY shown.8 DESC, seen DESC, finding_id LIMIT {FINDINGS_MOST}
"""  # noqa: S608  # constants

_NEWEST = """
SELECT toString(run_id) FROM contradiction_runs
WHERE project = {project:String} AND status != 'judge_failed' ORDER BY started_at DESC, run_id LIMIT 1
"""

#: `run`: empty for the newest run that asked the judge about the pair.
_PAIR = """
SELECT toString(result_id) AS result_id, toString(run_id) AS run_id, toUnixTimestamp64Milli(created_at) AS created
FROM contradiction_pairs
WHERE project = {project:String} AND pair_id = {pair:String} AND (isNotNull(verdict) OR judge_error != '') AND run_id GLOBAL IN
(
    SELECT run_id FROM contradiction_runs
    WHERE project = {project:String} AND ({run:String} = '' OR toString(run_id) = {run:String})
)
ORDER BY started_at DESC LIMIT 1
"""

_TEXTS = """
SELECT toString(result_id) AS result, query, documents, texts FROM contradiction_pairs
WHERE project = {project:String} AND run_id = {run:UUID} AND result_id IN ({results:Array(UUID)})
"""

_DONE = """
SELECT toString(result_id), label = 'skip' FROM contradiction_labels
WHERE project = {project:String} AND run_id = {run:UUID} AND labeller = {labeller:String} AND isNotNull(probability)
"""


@dataclass(frozen=True)
class LabelledPairs:
    """The pairs of a run with people's labels, and how many were skipped and have none."""

    pairs: "list[JudgedPair]"
    skipped: int = 0


def trends(data: Path, project: str, since_ms: int) -> "list[Trend]":
    """Return the runs of a project by series. Raises `OperationError`."""
    with open_store(settings_for("sre", data).store) as client:
        return trends_in(client, project, since_ms)


def trends_in(
    client: "Client", project: str, since_ms: int, until_ms: int = OPEN_END_MS, *, most: int = RUNS_MOST
) -> "list[Trend]":
    """Return the newest runs of a project in a range of time (Unix ms) by series: `most` of them."""
    from assay_evals.contradictions.rate import difference
    from assay_evals.contradictions.trend import Trend, by_series

    wanted = {"project": project, "since": since_ms, "until": until_ms, "most": most}
    rows = list(client.query(_RUNS, parameters=wanted).named_results())
    labelled = {str(row[0]) for row in client.query(_LABELLED, parameters={"project": project}).result_rows}
    points = [_point(client, project, dict(row), labelled) for row in rows]
    found = []
    for series, of_series in by_series(points):
        rated = [point for point in of_series if point.rate is not None][-2:]
        change = None
        if len(rated) == 2:
            before, after = (_whole(client, project, point.run_id, point.intended).pairs for point in rated)
            change = difference(before, after) if before and after else None
        found.append(Trend(series, of_series, change))
    return found


def _point(client: "Client", project: str, row: dict[str, Any], labelled: Collection[str]) -> "Point":
    from assay_evals.contradictions.rate import corrected_rate
    from assay_evals.contradictions.report import Series, Status
    from assay_evals.contradictions.trend import Point

    summary = orjson.loads(row["summary"])
    nothing = LabelledPairs([])
    whole = _whole(client, project, row["run_id"], row["intended"]) if row["run_id"] in labelled else nothing
    bounds = summary.get("rates", {}).get("pairs", {}).get("bounds")
    rated = row["rate"] is not None
    return Point(
        run_id=row["run_id"],
        started_at=datetime.fromtimestamp(row["started"] / 1000, UTC),
        status=Status(row["status"]),
        series=Series(row["model"], row["sampling"], row["scope"], row["prompt"]),
        rate=(row["rate"], row["rate_low"], row["rate_high"]) if rated else None,
        query_rate=(row["query_rate"], row["query_rate_low"], row["query_rate_high"])
        if row["query_rate"] is not None
        else None,
        intended=row["intended"],
        judged=row["judged"],
        judge_errors=row["judge_errors"],
        contradictions=row["contradictions"],
        cost_usd=row["cost_usd"],
        findings=summary.get("findings_by_state", {}),
        verdicts=summary.get("verdict_breakdown", {}),
        corrected=corrected_rate(whole.pairs) if whole.pairs else None,
        bounds=(bounds[0], bounds[1]) if bounds else None,
        skipped=whole.skipped,
    )


def _whole(client: "Client", project: str, run_id: str, intended: int) -> LabelledPairs:
    """Return the pairs of a run with people's labels; none once some have expired, because the others are no random sample."""
    found = labelled_pairs(client, project, run_id)
    return found if len(found.pairs) >= intended else LabelledPairs([])


def labelled_pairs(client: "Client", project: str, run_id: str) -> LabelledPairs:
    """Return the pairs of a run with people's labels.

    Labels are given in a random order within each outcome, so those given so far are a random sample: the share that has one is the
    probability of a label. A skipped pair has none.
    """
    from assay_evals.contradictions.rate import JudgedPair

    rows = list(client.query(_PAIRS, parameters={"project": project, "run": run_id}).named_results())
    pairs = [
        JudgedPair(
            row["query"],
            (row["documents"][0], row["documents"][1]),
            row["stratum"],
            row["probability"],
            None if row["verdict"] is None else row["verdict"] == "contradiction",
            None if row["confirmed"] == row["refuted"] else row["confirmed"] > row["refuted"],
            failed=bool(row["failed"]),
        )
        for row in rows
    ]
    outcomes = [_outcome(row) for row in rows]
    shares = {}
    for outcome in Outcome:
        labelled = [pair.label is not None for pair, each in zip(pairs, outcomes, strict=True) if each is outcome]
        shares[outcome] = sum(labelled) / len(labelled) if labelled else 0.0
    return LabelledPairs(
        [
            replace(pair, label_probability=shares[outcome]) if outcome and pair.label is not None else pair
            for pair, outcome in zip(pairs, outcomes, strict=True)
        ],
        sum(bool(row["skipped"]) and not row["confirmed"] and not row["refuted"] for row in rows),
    )


def _outcome(row: Mapping[str, Any]) -> Outcome | None:
    """Return the outcome of a pair; None if the judge was not asked."""
    if row["verdict"] is None:
        return Outcome.ERROR if row["failed"] else None
    return Outcome.CONTRADICTION if row["verdict"] == "contradiction" else Outcome.OTHER


def findings(data: Path, project: str, since_ms: int, *, every: bool = False) -> list[dict[str, Any]]:
    """Return the findings of a project since a time, the most severe first, each as it was last seen.

    A finding that a person refuted in one of its pairs stays while another has it. `every`: also those that are refuted, resolved or gone.
    """
    with open_store(settings_for("sre", data).store) as client:
        return findings_in(client, project, since_ms, every=every)


def findings_in(
    client: "Client", project: str, since_ms: int, until_ms: int = OPEN_END_MS, *, every: bool = False
) -> list[dict[str, Any]]:
    """Return the findings of a project that were last seen in a range of time (Unix ms)."""
    from assay_evals.contradictions.judging import NEXT_STEP, Verdict

    wanted = {"project": project, "since": since_ms, "until": until_ms}
    rows = [dict(row) for row in client.query(_FINDINGS, parameters=wanted).named_results()]
    found = []
    for row in rows:
        ended, label = row.pop("ended"), row.pop("label") or None
        if every or not (ended or label == "refute"):
            seen = datetime.fromtimestamp(row.pop("seen") / 1000, UTC).isoformat(timespec="milliseconds")
            row["state"] = ended or row["state"]
            found.append(row | {"last_seen": seen, "label": label, "next_step": NEXT_STEP[Verdict(row["verdict"])]})
    return found


@dataclass(frozen=True)
class ToLabel:
    """A pair to label without the judge's verdict."""

    pair_id: str
    query: str
    documents: Sequence[str]
    texts: Sequence[str]


def queue(data: Path, project: str, count: int, labeller: str) -> list[ToLabel]:
    """Return the unlabelled pairs of a sample of the newest run: `count` pairs, drawn by outcome.

    In place of a pair that the labeller skipped comes the next one of its outcome.
    """
    with open_store(settings_for("sre", data).store) as client:
        run = _newest(client, project)
        done = _done(client, project, run, labeller)
        sample = _sample(
            _outcomes(client, project, run), run, count, [each for each, skipped in done.items() if skipped]
        )
        wanted = {"project": project, "run": run}
        left = [result for result in sample if result not in done]
        rows = client.query(_TEXTS, parameters={**wanted, "results": left}).named_results() if left else ()
        texts = {row["result"]: row for row in map(dict, rows)}
    return [
        ToLabel(sample[each].pair_id, texts[each]["query"], texts[each]["documents"], texts[each]["texts"])
        for each in left
    ]


@dataclass(frozen=True)
class _Drawn:
    pair_id: str
    probability: float


def _newest(client: "Client", project: str) -> str:
    rows = client.query(_NEWEST, parameters={"project": project}).result_rows
    if not rows:
        raise OperationError(
            "not_found", f"no run of project {project} is stored", "start one: assay eval contradictions run"
        )
    return str(rows[0][0])


def _outcomes(client: "Client", project: str, run: str) -> dict[str, tuple[str, Outcome]]:
    """Return the pairs of a run that the judge was asked about: their pair id and outcome."""
    rows = client.query(_PAIRS, parameters={"project": project, "run": run}).named_results()
    return {row["result_id"]: (row["pair_id"], outcome) for row in rows if (outcome := _outcome(row)) is not None}


def _done(client: "Client", project: str, run: str, labeller: str) -> dict[str, bool]:
    """Return the pairs of a run that a person labelled or skipped in the queue, and whether they skipped them."""
    wanted = {"project": project, "run": run, "labeller": labeller}
    return {str(result): bool(skipped) for result, skipped in client.query(_DONE, parameters=wanted).result_rows}


def _sample(
    asked: Mapping[str, tuple[str, Outcome]], run: str, count: int, skipped: Collection[str] = ()
) -> dict[str, _Drawn]:
    """Draw pairs at random within each outcome, in an order that does not tell the outcome.

    A sample of more pairs contains one of fewer. A skipped pair is not in it: the next one of its outcome is, so that the labels are as
    many as their probability says.
    """
    order = sorted(asked, key=lambda each: sha256(f"{run}/{each}".encode()).digest())
    of = {outcome: [each for each in order if asked[each][1] is outcome] for outcome in Outcome}
    sizes = {
        outcome: min(len(of[outcome]), (count + FIFTH - first) // FIFTH) for first, outcome in enumerate(RARE, start=1)
    }
    sizes[Outcome.OTHER] = min(len(of[Outcome.OTHER]), count - sum(sizes.values()))
    for outcome in RARE:  # what the others leave
        sizes[outcome] = min(len(of[outcome]), sizes[outcome] + count - sum(sizes.values()))
    drawn = dict[str, _Drawn]()
    for outcome, size in sizes.items():
        left = [each for each in of[outcome] if each not in skipped][:size]
        drawn |= {each: _Drawn(asked[each][0], len(left) / len(of[outcome])) for each in left}
    return {each: drawn[each] for each in order if each in drawn}


def label_pair(
    data: Path, project: str, pair_id: str, label: str, actor: Actor, *, in_queue: int | None = None, note: str = ""
) -> None:
    """Store a person's label of a pair, which replaces an earlier one by the same person.

    `label`: confirm or refute; in the queue also skip, which is none.

    `in_queue`: the size of the sample that the pair was labelled in, blind: only such labels correct the rate, and no label outside of the
    queue replaces them. The identity `console` writes it, as every label of a person. Raises `OperationError`.
    """
    from assay_runtime.store import insert_json_rows

    if len(note) > NOTE_CHARS:
        raise OperationError("invalid", f"--note: at most {NOTE_CHARS:,} characters")
    with open_store(settings_for("sre", data).store) as client:
        run = "" if in_queue is None else _newest(client, project)
        wanted = {"project": project, "pair": pair_id, "run": run}
        rows = list(client.query(_PAIR, parameters=wanted).named_results())
        if not rows:
            of = " by its newest run" if run else ""
            raise OperationError("not_found", f"no judged pair {pair_id[:80]!r} is stored in project {project}{of}")
        pair, probability = dict(rows[0]), None
        if in_queue is not None:
            done = _done(client, project, run, actor.name)
            skipped = [each for each, is_skipped in done.items() if is_skipped and each != pair["result_id"]]
            drawn = _sample(_outcomes(client, project, run), run, in_queue, skipped).get(pair["result_id"])
            if drawn is None:
                raise OperationError(
                    "invalid", f"the pair {pair_id[:80]} is not in the queue of {in_queue} of the newest run"
                )
            probability = drawn.probability
    settings = settings_for("console", data).store
    row = {
        "schema_version": 1,
        "label_id": new_event_id(),
        "result_id": pair["result_id"],
        "run_id": pair["run_id"],
        "project": project,
        "pair_id": pair_id,
        "created_at": iso(datetime.fromtimestamp(pair["created"] / 1000, UTC)),
        "label": label,
        "probability": probability,
        "labeller": actor.name,
        "labelled_at": iso(datetime.now(UTC), "microseconds"),
        "note": scrubbed_words(note)[:NOTE_CHARS],
    }
    with open_store(settings) as client:
        insert_json_rows(client, f"{settings.base_database}.contradiction_labels", orjson.dumps(row), 1)
