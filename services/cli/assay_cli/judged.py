"""Judging the answers of an evaluation run with the judge that samples production, on a budget of the run's own."""

import asyncio
from typing import TYPE_CHECKING, Any

from assay_cli.errors import CommandError

if TYPE_CHECKING:
    from assay_evals.dataset import Case
    from assay_evals.replay import Retrieved

#: Seconds before a call that the API was too busy for is tried again, and how often it is tried in all.
AGAIN_S, TRIES = 1.0, 3


class RunJudge:
    """Judges answers: `lexical`, or the model that settings name. Money is set aside before each call; at the cap answers go unjudged.

    What goes unjudged has no metrics of the judge, and is counted: `skipped` by the budget, `errors` by the API, `unfit` where an answer is
    not one that production's judge takes.
    """

    def __init__(self, name: str, budget_usd: float) -> None:
        from assay_judge import lexical
        from assay_judge.pricing import NANO

        if name not in ("lexical", "anthropic"):
            raise CommandError(f"--judge: {name!r} is not one of lexical, anthropic")
        self.skipped = self.errors = self.unfit = self.spent = 0
        self._cap = int(budget_usd * NANO)
        self._api: Any = None
        self.fingerprint = lexical.judge().fingerprint
        if name == "lexical":
            return
        from assay_judge.api import Api
        from assay_judge.app import judge_of, key_of
        from assay_judge.pricing import tariff_of
        from assay_judge.rules import load_rules
        from assay_runtime.config import load_settings

        settings = load_settings().judge.model_copy(update={"backend": "anthropic"})
        if not (key := key_of(settings)):
            raise CommandError(
                "--judge anthropic needs a key: set judge.api_key (ASSAY_JUDGE_API_KEY), or use --judge lexical"
            )
        tariff = tariff_of(load_rules(settings.rules_file), settings.model, batch=False)
        self._settings, self._tariff = settings, tariff
        self._api = Api(settings, key)
        self.fingerprint = judge_of(settings).fingerprint

    async def __call__(self, case: "Case", answer: "Retrieved") -> dict[str, float | None]:
        """The judge's metrics of one answer; nothing where it could not be judged."""
        from pydantic import ValidationError

        from assay_judge import lexical
        from assay_judge.judging import verdict_fields
        from assay_judge.prompt import case_of
        from assay_schema.events import Answer

        if not any(text.strip() for _, text in answer.contexts) or not (answer.answer or "").strip():
            return {}
        try:
            asked = Answer.model_validate(
                {
                    "query": case.query,
                    "answer": answer.answer,
                    "contexts": [{"id": name, "text": text} for name, text in answer.contexts],
                    "citations": [{"context_id": name, "claim": claim} for name, claim in answer.citations],
                    "model": "target",
                    "latency_ms": answer.latency_ms,
                }
            )
        except ValidationError:  # longer than what is judged in production, or not in its form
            self.unfit += 1
            return {}
        judged = case_of(case.id, asked)
        verdict = lexical.judged(judged) if self._api is None else await self._call(judged)
        if verdict is None:
            return {}
        measured = verdict_fields(verdict, judged).get("metrics", {})
        return {str(name): value for name, value in measured.items()} if isinstance(measured, dict) else {}

    async def _call(self, case: Any) -> Any:
        from assay_judge.api import CallError, StoppedError, TryAgainError
        from assay_judge.prompt import message_of

        bound = self._tariff.bound(len(message_of(case).encode()), self._settings.max_output_tokens)
        for attempt in range(1, TRIES + 1):
            if self.spent + bound > self._cap:
                self.skipped += 1
                return None
            self.spent += bound
            try:
                reply = await self._api.call(case, self._settings.request_timeout_s)
            except StoppedError as error:
                raise CommandError(f"the judge's API refuses: {error.kind}; see judge.api_key") from None
            except CallError as error:
                self._settle(bound, error.usage)
                if not isinstance(error, TryAgainError) or attempt == TRIES:
                    self.errors += 1
                    return None
                await asyncio.sleep(AGAIN_S * attempt)
            else:
                self._settle(bound, reply.usage)
                return reply.verdict
        return None

    def _settle(self, bound: int, usage: Any) -> None:
        """Replace what was set aside by what it cost; where that is not known it stays."""
        if usage is not None:
            self.spent += self._tariff.cost(usage) - bound

    async def close(self) -> None:
        """Close the connections to the API."""
        if self._api is not None:
            await self._api.close()

    def close_note(self) -> str | None:
        """What a person should know at the end."""
        from assay_judge.pricing import dollars

        unfit = f"{self.unfit} answers too long or malformed to be judged" if self.unfit else None
        if self._api is None:
            return unfit
        note = f"judged for ${dollars(self.spent):.4f}; {self.skipped} skipped by the budget, {self.errors} errors of the API"
        return f"{note}; {unfit}" if unfit else note


def judge_named(name: str | None, budget: str | None) -> RunJudge | None:
    """The judge of a command's options; None without one."""
    from assay_cli.asking import a_number

    if name is None:
        return None
    cap = a_number(budget, "--judge-budget")
    if cap is not None and cap < 0:
        raise CommandError("--judge-budget: below 0")
    return RunJudge(name, 1.0 if cap is None else cap)
