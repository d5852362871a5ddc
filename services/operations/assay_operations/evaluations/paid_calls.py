"""Paid calls to the judge's API: money is reserved before each, and transient errors are retried."""

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from assay_operations.errors import OperationError
from assay_operations.evaluations.judge_cache import JudgeCache, Kept, cache_in
from assay_operations.evaluations.judge_spending import Spending

if TYPE_CHECKING:
    from assay_judge.api import Prompt
    from assay_judge.pricing import Usage
    from assay_schema.settings import JudgeSettings

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds before a retry when the API is busy, and the maximum number of attempts.
RETRY_S, ATTEMPTS = 1.0, 3
#: Maximum wait that a response of the API can request, in seconds.
PAUSE_MOST_S = 30.0


def expect_backend(name: str, option: str = "--judge") -> None:
    """Raise `OperationError` if the settings are for the other API: a key is valid for one only."""
    from assay_runtime.config import load_settings

    backend = load_settings().judge.backend
    if (name == "openai") != (backend == "openai"):
        raise OperationError(
            "invalid",
            f"{option} {name}: judge.backend (ASSAY_JUDGE_BACKEND) is {backend}, so address, key and model are of that API"
            + ('; set it to "openai", with judge.model and judge.base_url' if name == "openai" else ""),
        )


def judge_settings(model: str) -> "JudgeSettings":
    """Return the settings of the judge for another model of its API.

    Raises `OperationError` if its price is not known.
    """
    from assay_judge.judge_config import load_judge_config
    from assay_runtime.config import load_settings

    settings = load_settings().judge
    if model == settings.model:
        return settings
    if settings.backend == "openai" and model not in load_judge_config(settings.rules_file).prices.models:
        raise OperationError(
            "invalid",
            f"--model: {model!r} has no price, so its cost cannot be capped (judge.price_input_usd and judge.price_output_usd are those of "
            "judge.model): add prices.models to the file named by judge.rules_file (ASSAY_JUDGE_RULES_FILE)",
        )
    return settings.model_copy(update={"model": model, "price_input_usd": None, "price_output_usd": None})


class NoKeyError(OperationError):
    """A judge is configured without its key."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid", message)


class PaidCalls:
    """Calls to the judge's model, within a budget that is never exceeded."""

    def __init__(
        self,
        budget_usd: float,
        *,
        without_key: str,
        cached_in: Path | None = None,
        settings: "JudgeSettings | None" = None,
        spending: Spending | None = None,
    ) -> None:
        """`without_key`: the message if no key is set. `cached_in`: the folder of runs in which replies are cached.

        `settings`: of the judge, if not those of the process. `spending`: the account that several judges share, with one budget.

        Raises `OperationError`, `NoKeyError` among them, and `SettingsError`.
        """
        from assay_judge.backends import api_of, judge_of, key_of, tariff_for
        from assay_judge.judge_config import load_judge_config
        from assay_judge.pricing import NANO
        from assay_runtime.config import load_settings

        self.settings = settings or load_settings().judge
        if self.settings.backend != "openai":
            if not key_of(self.settings):
                raise NoKeyError(without_key)
            self.settings = self.settings.model_copy(update={"backend": "anthropic"})
        #: The judge that is called.
        self.judge = judge_of(self.settings)
        self._tariff = tariff_for(self.settings, load_judge_config(self.settings.rules_file))
        self._api = api_of(self.settings)
        #: Cache of replies.
        self.cache = cache_in(cached_in, key_of(self.settings)) if cached_in else None
        #: Budget in nano-dollars, and its use.
        self.cap = int(budget_usd * NANO)
        self.spending = spending or Spending()
        #: Nano-dollars of the calls to this judge alone.
        self.own = 0

    def expected(self, prompt: "Prompt", output_tokens: int, *, repeat: int = 0) -> int:
        """Return the usual cost of a call in nano-dollars: four bytes a token, and this many tokens written.

        A cached reply costs nothing.
        """
        from assay_judge.pricing import Usage

        if self.cache is not None and self.cache.get(self._name_of(self.cache, prompt, repeat)) is not None:
            return 0
        read = len((prompt.system + prompt.message + str(prompt.schema)).encode()) // 4
        return self._tariff.cost(Usage(input=read, output=output_tokens))

    @property
    def spent(self) -> int:
        """Maximum cost so far in nano-dollars, earlier processes included."""
        return self.spending.spent

    async def ask(self, prompt: "Prompt", read: Callable[[str, "Usage | None"], T], *, repeat: int = 0) -> T:
        """Ask the API, and return the reply as parsed by `read`, which may raise `BadReplyError`.

        A cached reply costs nothing; each `repeat` has its own.

        Raises `NoMoneyError` if the budget does not suffice, `CallError` if all attempts failed, and `OperationError` if the API rejects
        every call.
        """
        from assay_judge.api import CallError

        name = ""
        if self.cache is not None:
            name = self._name_of(self.cache, prompt, repeat)
            if (kept := self.cache.get(name)) is not None:
                with contextlib.suppress(CallError):  # an earlier version may have accepted this reply
                    parsed = read(kept.text, None)
                    self.cache.count(kept)
                    return parsed
            self.cache.count(None)
        return await _retry(self._call, prompt, read, name)

    def _name_of(self, cache: JudgeCache, prompt: "Prompt", repeat: int) -> str:
        return cache.name_of(self.judge.fingerprint, prompt, self.settings.max_output_tokens, repeat)

    async def _call(self, prompt: "Prompt", read: Callable[[str, "Usage | None"], T], name: str) -> T:
        """Make one call within the budget, and cache its reply."""
        from assay_judge.api import CallError, StoppedError
        from assay_judge.prompt import SYSTEM

        more = "" if prompt.system is SYSTEM else prompt.system  # every bound includes the system prompt of the judge
        bound = self._tariff.bound(len((more + prompt.message).encode()), self.settings.max_output_tokens)
        await self.spending.reserve(bound, self.cap)
        self.own += bound
        usage: Usage | None = None
        try:
            said = await self._api.ask(prompt, self.settings.request_timeout_s)
            usage = said.usage
            parsed = read(said.text, said.usage)
        except StoppedError as error:
            usage = error.usage
            raise OperationError("refused", f"the judge's API rejects the call: {error.kind}") from None
        except CallError as error:
            usage = error.usage
            raise
        finally:  # if the cost is unknown, the reservation counts
            cost = bound if usage is None else self._tariff.cost(usage)
            self.spending.settle(bound, cost)
            self.own += cost - bound
        if self.cache is not None:
            self.cache.put(name, Kept(said.text, cost))
        return parsed

    async def close(self) -> None:
        """Close the connections to the API, and the cost file."""
        self.spending.close()
        await self._api.close()


async def _retry(call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Make a call, and retry it while its errors are transient."""
    from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

    from assay_judge.api import CallError
    from assay_judge.call_budget import NextStep, classify

    def is_transient(error: BaseException) -> bool:
        return isinstance(error, CallError) and classify(error) is NextStep.RETRY

    def pause_s(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.pause_s if isinstance(error, CallError) else 0.0
        return max(RETRY_S * state.attempt_number, min(asked_for, PAUSE_MOST_S))

    retrying = AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS), wait=pause_s, retry=retry_if_exception(is_transient), reraise=True
    )
    return await retrying(call, *args, **kwargs)
