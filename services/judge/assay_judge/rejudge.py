"""Re-judging of stored answers within the same budget, for `assay judge rejudge`."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any

from assay_judge import lexical
from assay_judge.alerts import CommandAlerts
from assay_judge.api import Calls
from assay_judge.backends import api_of, judge_of, tariff_for
from assay_judge.breaker import Breaker
from assay_judge.call_budget import NotJudgedError
from assay_judge.evaluator import Evaluator
from assay_judge.judge_config import load_judge_config
from assay_judge.ledger import ledger_of
from assay_judge.lexical_score import lexical_score
from assay_judge.sampling import Draw
from assay_runtime.connection import Client
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import Settings, SettingsError


def stored_answer(row: Mapping[str, Any]) -> ScrubbedAnswer:
    """Convert a row of the table `answers` to an answer."""
    contexts = [_named(("id", "source_id", "text", "score"), context) for context in row["contexts"]]
    citations = [_named(("context_id", "claim"), citation) for citation in row["citations"]]
    payload = {name: row[name] for name in ("query", "answer", "model", "latency_ms")}
    envelope = {
        name: row[name] for name in ("id", "event_id", "project", "service", "occurred_at", "created_at", "policy")
    }
    for name in ("occurred_at", "created_at"):
        envelope[name] = envelope[name].replace(tzinfo=UTC)  # the store's driver returns UTC without a time zone
    known = {name: row[name] for name in ("traceparent", "origin") if name in row}
    document = envelope | known | {"kind": "answer", "schema_version": 1}
    return ScrubbedAnswer.model_validate(
        document | {"payload": payload | {"contexts": contexts, "citations": citations}}, strict=False
    )


def _named(names: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else dict(zip(names, value, strict=True))


async def rejudge_answers(
    client: Client, settings: Settings, rows: Iterable[Mapping[str, Any]]
) -> AsyncIterator[Score]:
    """Re-judge answers, each with its original draw. Yields the new scores.

    An answer that another process judges meanwhile is left to it. Raises `SettingsError`, also for a refused key, which costs nothing, and
    for a budget that is used up: the answers left keep their scores.
    """
    config, judge = load_judge_config(settings.judge.rules_file), judge_of(settings.judge)
    ledger = ledger_of(client, settings)
    if judge.backend == "anthropic-batch":  # re-judging makes single calls, at their price
        judge = replace(judge, backend="anthropic")
    evaluator: Evaluator | None = None
    alerts: CommandAlerts | None = None
    api: Calls | None = None
    if judge.backend != "lexical":
        api = api_of(settings.judge)
        tariff = tariff_for(settings.judge, config)
        breaker = Breaker(asyncio.get_running_loop().time)
        draining = asyncio.Event()
        alerts = CommandAlerts(client, settings.redis.shards, judge.fingerprint, settings.judge, draining.set)
        evaluator = Evaluator(settings.judge, judge, tariff, ledger, api, breaker, alerts, draining)
    try:
        for row in rows:
            event = stored_answer(row)
            draw = Draw(
                sampled=True,
                base=bool(row["base"]),
                base_probability=float(row["base_probability"]),
                inclusion_probability=float(row["inclusion_probability"]),
                boosts=tuple(row["boosts"]),
            )
            checks = {name: bool(passed) for name, passed in row["checks"].items()}
            data: bytes | None
            if evaluator is None:
                data = lexical_score(lexical.judge(), event, draw, checks, settings.judge.max_input_bytes)
            else:
                if not await ledger.forget(event.project, str(event.event_id), judge.fingerprint):
                    continue
                try:
                    data = await evaluator.score(event, draw, checks)
                except NotJudgedError:
                    if alerts is not None and alerts.refused:
                        raise SettingsError(alerts.refused) from None
                    continue
            score = Score.model_validate_json(data) if data else None
            if score is not None and score.status is ScoreStatus.SKIPPED_BUDGET:  # it would replace a verdict
                raise SettingsError(f"{score.detail}: raise it, or judge the rest again tomorrow (UTC)")
            if score is not None:
                yield score
    finally:
        if api is not None:
            await api.close()
