"""Fill a store with rows of every kind, as pages of the console show them: a shop whose answers got worse two days ago."""

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from assay_auditor.keys import load_or_create
from assay_auditor.log import Log
from assay_auditor.sources import Sources
from assay_console.pages import PAGES
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.run.run_store import store_run
from assay_runtime.store import Client, insert_json_rows
from assay_schema.settings import AuditorSettings, StoreSettings
from tests.support.audited import ALL, operation
from tests.support.sample_rows import (
    answer,
    candidate,
    contradiction_label,
    contradiction_pair,
    contradiction_run,
    dataset_case,
    event_id_at,
    failure,
    feedback,
    iso,
    label,
    lines,
    score,
    server_event,
    session_part,
    tool_call,
)
from tests.support.store import refresh_rollups

_HOUR_MS = 3_600_000
_QUESTIONS = (
    "how do I return boots that I have worn once?", "is the alpine jacket waterproof?", "which sizes run small?",
    "how long does delivery to Norway take?", "can I change the address after ordering?", "what does the guarantee cover?",
)  # fmt: skip
#: Texts that try to run a script, to load something, to turn the page around or to break a table.
HOSTILE = (
    "<script>document.title='broken'</script><img src=http://127.0.0.1:1/x onerror=\"document.title='broken'\">",
    "![x](http://127.0.0.1:1/y) [click](javascript:alert(1)) {{ 7 * 7 }} {% raw %} ${7*7}",
    "\u202egnp.exe\u202c zero\u200bwidth \u2066isolate\u2069 bell\u0007 escape\u001b[31mred",
    '=HYPERLINK("http://127.0.0.1:1")\t@SUM(1+1)\t\'; DROP TABLE answers; --',
    "</td></tr></table></main><style>*{display:none}</style><base href=//127.0.0.1:1>",
)


@dataclass(frozen=True)
class Filled:
    """Ids of rows to open."""

    project: str
    retrieval: str
    answer: str
    hostile: tuple[str, ...]
    alert: str
    session: str
    dataset: str = "golden"
    #: Names of two runs over the same cases, and a case of both.
    runs: tuple[str, str] = ("main", "pull-request")
    case: str = "case-1"


def fill(owner: Client, *, now_ms: int | None = None) -> Filled:
    """Insert 14 days of one project, and hostile texts of another. Rollups are counted afterwards."""
    now_ms = now_ms or int(time.time() * 1000)
    rows: dict[str, list[dict[str, Any]]] = {}

    def add(table: str, row: dict[str, Any]) -> None:
        rows.setdefault(table, []).append(row)

    ids = []
    for place in range(14 * 12):
        at = now_ms - 120_000 - place * 2 * _HOUR_MS
        text = _QUESTIONS[place % len(_QUESTIONS)]
        recent = place < 24
        found, replied = event_id_at(at), event_id_at(at + 900)
        ids.append((found, replied))
        passage = "Boots can be returned within 30 days if they are clean."
        old = {"project": "shop", "days_old": (now_ms - at) / 86_400_000}
        add("candidates", candidate(**old, event_id=found, query=text, latency_ms=12 + place % 40))
        add(
            "answers",
            answer(
                **old, event_id=replied, query=text, retrieval_event_id=found,
                answer="You can return boots within 30 days. They must be clean. Delivery is free." if recent
                else "You can return boots within 30 days if they are clean.",
                contexts=[{"id": "handbook/returns", "source_id": None, "text": passage, "score": 0.9}],
                citations=[{"context_id": "handbook/returns", "claim": None}],
            ),
        )  # fmt: skip
        supported = {
            "verdict": "supported",
            "demoted": False,
            "answer_from": 0,
            "answer_to": 36,
            "passage": 1,
            "quote_from": 0,
            "quote_to": 37,
        }
        unfounded = {
            "verdict": "not_found",
            "demoted": False,
            "answer_from": 57,
            "answer_to": 74,
            "passage": 0,
            "quote_from": 0,
            "quote_to": 0,
        }
        add(
            "scores",
            score(
                faithfulness=0.55 if recent else 0.97, project="shop", event_id=replied, judged_at=iso(at + 2000),
                verdicts=[unfounded, supported] if recent else [supported],
            ),
        )  # fmt: skip
        if place % 3 == 0:
            add(
                "feedback",
                feedback(
                    **old, event_id=event_id_at(at + 60_000), target_event_id=replied,
                    verdict="negative" if recent else "positive",
                ),
            )  # fmt: skip
        add("tool_calls", tool_call(**old, event_id=event_id_at(at + 300)))
    add("server_events", server_event(project="shop"))
    add("session_parts", session_part(project="shop"))
    add("capture_failures", failure(project="shop"))
    add("labels", label(project="shop", event_id=ids[3][1]))
    add("dataset_cases", dataset_case(1, project="shop", event_id=ids[5][0]))
    add("dataset_cases", dataset_case(2, project="shop", query=HOSTILE[0], expected_slugs=[HOSTILE[4]]))
    hostile = []
    for place, text in enumerate(HOSTILE):
        at = now_ms - 60_000 - place * 1000
        hostile.append(event_id_at(at))
        add(
            "candidates",
            candidate(place, project="hostile", event_id=hostile[-1], query=text, retrieved_slugs=[text[:200]]),
        )
    for place, text in enumerate(HOSTILE):
        own = {"project": "hostile", "tool_name": text, "agent_name": text, "session_id": text[:200]}
        refused = {
            "status": "refused",
            "error_kind": text,
            "pii_attempted": ["contact", "health"],
            "pii_blocked": ["health"],
        }
        add("tool_calls", tool_call(place, event_id=event_id_at(now_ms - 50_000 - place * 1000), **own, **refused))
    add("operations_audit", operation(at=iso(now_ms - 40_000), comment=HOSTILE[0]))
    alert_id = str(uuid5(UUID(int=0), "shop faithfulness"))
    add("alerts", alert_row(alert_id, now_ms))
    for table, made in contradictions("shop", HOSTILE, now_ms).items():
        rows.setdefault(table, []).extend(made)
    for table, made in rows.items():
        insert_json_rows(owner, f"assay_base.{table}", lines(made), len(made))
    _evaluate(owner, now_ms)
    _audit(owner)
    refresh_rollups(owner)
    return Filled("shop", ids[3][0], ids[3][1], tuple(hostile), alert_id, str(rows["session_parts"][0]["session_id"]))


def contradictions(project: str, texts: Sequence[str], now_ms: int) -> dict[str, list[dict[str, Any]]]:
    """Return runs of three weeks, one without a rate, with findings that are open, gone, resolved and refuted. `texts`: of the findings."""
    days = (now_ms / 1000 - time.time()) / -86_400
    runs = [
        contradiction_run(project=project, days_old=days + old, rate=rate, rate_low=rate / 2, rate_high=2 * rate)
        for old, rate in ((21.0, 0.12), (14.0, 0.1), (7.0, 0.06), (0.1, 0.05))
    ]
    nothing = dict.fromkeys(("rate", "rate_low", "rate_high", "query_rate", "query_rate_low", "query_rate_high"))
    none_judged = {"judged": 0, "judge_errors": 44, "contradictions": 0, "summary": "{}"}
    runs.append(contradiction_run(project=project, days_old=days + 10, status="judge_failed", **nothing, **none_judged))
    runs[3]["pairs_gone"] = [f"{project}-gone"]

    def pair(run: int, name: str, place: int, text: str, **more: Any) -> dict[str, Any]:
        made = {
            "run_id": runs[run]["run_id"], "started_at": runs[run]["started_at"], "created_at": runs[run]["started_at"],
            "pair_id": f"{project}-{name}", "pair_key": f"{project}-{name}", "finding_id": f"{project}-{name}",
            "query": text, "documents": [text[:200], "guides/limits"], "claims": [text, "The limit is 9 requests per second."],
            "reason": text, "texts": [text, "The limit is 9 requests per second. Ask support for more."],
        }  # fmt: skip
        return contradiction_pair(place, project=project, **{**made, **more})

    severities = ("high", "medium", "low", "info")
    pairs = [
        pair(3, f"open-{place}", place, text, severity=severities[place % 4], state="persisting")
        for place, text in enumerate(texts)
    ]
    clear = {"verdict": "no_contradiction", "finding_id": "", "claims": [], "state": "", "severity": "info"}
    pairs += [
        pair(2, "gone", 10, texts[0]), pair(2, "resolved", 11, texts[0]), pair(3, "resolved", 11, texts[0], **clear),
        pair(3, "refuted", 12, texts[0]),
    ]  # fmt: skip
    refuted = contradiction_label(
        project=project, result_id=pairs[-1]["result_id"], run_id=pairs[-1]["run_id"], pair_id=pairs[-1]["pair_id"],
        label="refute", labeller=texts[0][:100], note=texts[0],
    )  # fmt: skip
    return {"contradiction_runs": runs, "contradiction_pairs": pairs, "contradiction_labels": [refuted]}


def _evaluate(owner: Client, now_ms: int) -> None:
    """Store two runs of the shop: in the second, every third case is worse."""
    for place, name in enumerate(("main", "pull-request")):
        config = RunConfig("golden", "2", "f" * 64, "shop:search", project="shop", branch=name, code_version="0123abcd")
        results = [
            CaseResult(
                HOSTILE[4] if number == 0 else f"case-{number}", "technical" if number % 2 else "status",
                [HOSTILE[0], "guides/keys"] if place and number % 3 == 0 else ["guides/keys", "guides/rotation"], 20.0 + number,
                {"mrr": 0.5 if place and number % 3 == 0 else 1.0, "recall@10": 1.0}, "HTTP 500" if number == 40 else None,
            )
            for number in range(41)
        ]  # fmt: skip
        began, ended = iso(now_ms - 7_200_000 + place), iso(now_ms - 7_100_000 + place)
        store_run(owner, StoreSettings(), Run(name, config, began, ended, results))


def _audit(owner: Client) -> None:
    """Write the audit log of all rows, as the auditor does, signed by a key that is not kept."""
    with tempfile.TemporaryDirectory() as scratch:
        signer, secret = load_or_create(Path(scratch) / "log", AuditorSettings().origin)
        sources = Sources(owner, signer.name)
        log = Log(owner, "assay_base", signer, secret, Path(scratch) / "log")
        log.resume(sources)
        for found in (sources.events(0, ALL, 10_000), sources.lost(0, 10_000), sources.operations(0, 10_000)):
            log.append(found)
        log.sign()


def alert_row(alert_id: str, now_ms: int | None = None) -> dict[str, Any]:
    """Return an open alert of the shop, raised 40 hours ago."""
    now_ms = now_ms or int(time.time() * 1000)
    return {
        "schema_version": 1,
        "alert_id": alert_id,
        "transition_id": str(uuid5(UUID(alert_id), "1")),
        "sequence": 1,
        "kind": "score_drift",
        "state": "critical",
        "previous": "ok",
        "severity": "critical",
        "project": "shop",
        "service": None,
        "metric": "faithfulness",
        "series": "0123456789abcdef",
        "since": iso(now_ms - 48 * _HOUR_MS),
        "at": iso(now_ms - 40 * _HOUR_MS),
        "value": 0.55,
        "baseline": 0.97,
        "effect": -0.43,
        "interval": [0.5, 0.6],
        "n": 24,
        "evidence": 3.2,
        "group": "shop",
        "summary": "faithfulness of shop fell from 0.970 to 0.550",
        "query": "SELECT event_id, metrics['faithfulness'] FROM scores WHERE project = 'shop'",
        "acknowledge": f"assay drift acknowledge {alert_id}",
    }


#: Is in every name and text of the neighbour's rows, and nowhere else.
SECRET = "zq-neighbour-zq"
NEIGHBOUR = "neighbour"


def fill_neighbour(owner: Client, beside: Filled, *, now_ms: int | None = None) -> list[str]:
    """Insert rows of another project that share what they can with a filled one: questions, sessions, datasets, targets.

    Returns the ids of these rows.
    """
    now_ms = now_ms or int(time.time() * 1000)
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("candidates", "answers", "scores", "feedback", "tool_calls")
    }
    ids = []
    own = {"project": NEIGHBOUR, "service": SECRET, "session_id": beside.session}
    for place in range(12):
        at = now_ms - 150_000 - place * _HOUR_MS
        found, replied, voted, called = (event_id_at(at + later) for later in (0, 900, 60_000, 300))
        ids += [found, replied, voted, called]
        text = _QUESTIONS[place % len(_QUESTIONS)]
        rows["candidates"].append(
            candidate(
                **own, event_id=found, query=text, retrieved_slugs=[SECRET], source_ids=[SECRET], embedding_model=SECRET
            )
        )
        rows["answers"].append(
            answer(
                **own, event_id=replied, query=text, retrieval_event_id=beside.retrieval if place == 0 else found,
                answer=f"Ask {SECRET}.", model=SECRET,
                contexts=[{"id": SECRET, "source_id": SECRET, "text": SECRET, "score": 0.9}],
                citations=[{"context_id": SECRET, "claim": SECRET}],
            )
        )  # fmt: skip
        rows["scores"].append(
            score(faithfulness=0.1, project=NEIGHBOUR, event_id=replied, judged_at=iso(at + 2000), model=SECRET)
        )
        target = beside.answer if place == 0 else replied
        rows["feedback"].append(
            feedback(**own, event_id=voted, target_event_id=target, verdict="negative", text=f"as {SECRET} says")
        )
        rows["tool_calls"].append(
            tool_call(
                **own, event_id=called, tool_name=SECRET, args_summary=SECRET, result_summary=SECRET, status="error"
            )
        )
    part = session_part(project=NEIGHBOUR, session_id=beside.session, title=SECRET, model=SECRET, request=SECRET)
    rows["session_parts"] = [part]
    rows["capture_failures"] = [failure(project=NEIGHBOUR, service=SECRET, detail=SECRET) for _ in range(3)]
    rows["labels"] = [label(project=NEIGHBOUR, event_id=ids[1], labeller=SECRET, note=SECRET)]
    rows["dataset_cases"] = [
        dataset_case(1, project=NEIGHBOUR, query=SECRET, expected_slugs=[SECRET], event_id=ids[0], reviewer=SECRET),
        dataset_case(7, project=NEIGHBOUR, dataset=SECRET),
    ]
    alert_id = str(uuid5(UUID(int=0), SECRET))
    told = {"project": NEIGHBOUR, "summary": SECRET, "query": SECRET, "series": SECRET, "group": SECRET}
    rows["alerts"] = [alert_row(alert_id, now_ms) | told]
    rows |= contradictions(NEIGHBOUR, [SECRET], now_ms)
    for table, made in rows.items():
        insert_json_rows(owner, f"assay_base.{table}", lines(made), len(made))
    config = RunConfig("golden", "2", "f" * 64, SECRET, project=NEIGHBOUR, branch=SECRET, code_version="0123abcd")
    result = CaseResult("case-1", "technical", [SECRET], 20.0, {"mrr": 0.1, "recall@10": 0.1}, SECRET)
    store_run(owner, StoreSettings(), Run(SECRET, config, iso(now_ms - 100_000), iso(now_ms - 90_000), [result]))
    refresh_rollups(owner)
    return [*ids, alert_id]


def path_of(name: str, rows: Filled | None) -> str:
    """Return the address of a page; without rows its ids lead to nothing."""
    page = next(each for each in PAGES if each.name == name)
    ids = {
        "event_id": rows.answer if rows else "01a21b4e-9db4-7d2a-bb5a-03118d49108c",
        "alert_id": rows.alert if rows else "1e72826b-6b49-50e8-a0a4-8f2105c112ec",
        "session_id": rows.session if rows else "none",
        "name": rows.dataset if rows else "none",
        "run_id": rows.runs[0] if rows else "none",
        "case_id": rows.case if rows else "none",
        "row": "0",
    }
    runs = f"?base={rows.runs[0]}&change={rows.runs[1]}" if rows else ""
    query = {
        "label": "?project=shop", "review": "?project=shop&scrubbed=1", "contradictions": "?project=shop",
        "differs": "?kind=retrieval&latency%3E=30&t=7d", "compare": runs, "case": runs,
    }.get(name, "")  # fmt: skip
    return re.sub(r"\{(\w+)(?::path)?\}", lambda place: ids.get(place[1], "none"), page.path) + query
