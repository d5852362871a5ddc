"""One call attempt to a model's API, the meaning of its failures, and Anthropic's API.

The SDK is imported on first use. Its own retries are off: it would sleep for as long as a `retry-after` header says.
Calls use `create()`, not `parse()`: that one discards the usage when a reply is truncated or refused.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from assay_judge.evidence import check_anchored
from assay_judge.pricing import Usage
from assay_judge.prompt import SYSTEM, Case, message_of
from assay_judge.verdict import SCHEMA, ReplyError, Verdict, parse
from assay_schema.settings import JudgeSettings

#: HTTP codes that stop all calls: the key, the bill, the permissions.
STOPPING = {401: "the key is refused", 402: "the account is out of money", 403: "the key does not permit this"}


class Reply(NamedTuple):
    """A verdict, and its usage."""

    verdict: Verdict
    #: None if the API did not report it.
    usage: Usage | None
    limit: int | None
    pause_s: float


class Prompt(NamedTuple):
    """Request to a model. `schema` is the JSON Schema of its reply."""

    system: str
    message: str
    schema: Mapping[str, Any]


class Said(NamedTuple):
    """Text of a reply, and its usage."""

    text: str
    #: None if the API did not report it.
    usage: Usage | None
    limit: int | None = None
    pause_s: float = 0.0


class CallError(Exception):
    """A failed attempt. `kind` is safe to record; `usage` is None if the attempt may have been billed."""

    def __init__(self, kind: str, usage: Usage | None = Usage(), *, pause_s: float = 0.0) -> None:  # noqa: B008  # frozen
        super().__init__(kind)
        self.kind = kind
        self.usage = usage
        self.pause_s = pause_s


class TryAgainError(CallError):
    """The API was busy, failed or was not reached; the same call may succeed later."""


class BadReplyError(CallError):
    """The reply is not a verdict. One more attempt is worth its price."""


class RejectedError(CallError):
    """The API will never accept this call because of the answer itself (too long, for example)."""


class StoppedError(CallError):
    """The API accepts no calls from us at all. `status` is the HTTP code."""

    def __init__(self, kind: str, status: int) -> None:
        super().__init__(kind)
        self.status = status


class Calls(ABC):
    """Client for single calls to an API."""

    @abstractmethod
    async def ask(self, prompt: Prompt, timeout_s: float) -> Said:
        """Make one attempt. Raises a `CallError`, whose class says how to proceed."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    async def call(self, case: Case, timeout_s: float) -> Reply:
        """Make one attempt at judging a case. Raises a `CallError`."""
        said = await self.ask(prompt_of(case), timeout_s)
        return Reply(verdict_in(said.text, said.usage, case), said.usage, said.limit, said.pause_s)


def prompt_of(case: Case) -> Prompt:
    """Build the prompt of a case."""
    return Prompt(SYSTEM, message_of(case), SCHEMA)


def parameters(prompt: Prompt, settings: JudgeSettings) -> dict[str, Any]:
    """Return the body of a request, for a single call and for one in a batch."""
    return {
        "model": settings.model,
        "max_tokens": settings.max_output_tokens,
        "system": [{"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": prompt.message}],
        "output_config": {"format": {"type": "json_schema", "schema": prompt.schema}, "effort": settings.effort},
    }


def connect(settings: JudgeSettings, key: str) -> Any:
    """Return the SDK's client. It emits no spans, because a monitor must not sample its own calls."""
    from anthropic import AsyncAnthropic

    options: dict[str, Any] = {"base_url": settings.base_url} if settings.base_url else {}
    return AsyncAnthropic(
        api_key=key, max_retries=0, timeout=settings.request_timeout_s, open_telemetry=False, **options
    )


class Api(Calls):
    """Client for single calls to Anthropic's API."""

    def __init__(self, settings: JudgeSettings, key: str) -> None:
        self._settings = settings
        self._client = connect(settings, key)

    async def ask(self, prompt: Prompt, timeout_s: float) -> Said:
        """Make one attempt. Raises a `CallError`, whose class says how to proceed."""
        import anthropic

        try:
            raw = await self._client.messages.with_raw_response.create(
                **parameters(prompt, self._settings), timeout=timeout_s
            )
        except anthropic.APITimeoutError:
            raise TryAgainError("APITimeoutError", None) from None
        except anthropic.APIStatusError as error:
            raise refusal_of(error.status_code, type(error).__name__, error.response.headers) from None
        except anthropic.APIConnectionError as error:
            refused = "ConnectError" in repr(error.__cause__)
            raise TryAgainError("APIConnectionError", Usage() if refused else None) from None
        try:
            message = await raw.parse()
            usage = usage_of(message.usage)
        except Exception:  # noqa: BLE001  # any error that the SDK raises for a body that is not the API's
            raise BadReplyError("ReplyUnreadable", None) from None
        return Said(text_of(message, usage), usage, *limits(raw.headers))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def text_of(message: Any, usage: Usage) -> str:
    """Return the text of a complete message. Raises `BadReplyError` with its usage."""
    match message.stop_reason:
        case "max_tokens" | "model_context_window_exceeded":
            raise BadReplyError("ReplyTruncated", usage)
        case "refusal":
            raise BadReplyError("ReplyRefused", usage)
    return "".join(block.text for block in message.content if block.type == "text")


def verdict_of(message: Any, case: Case, usage: Usage) -> Verdict:
    """Parse the verdict in a message. Raises `BadReplyError` with its usage."""
    return verdict_in(text_of(message, usage), usage, case)


def verdict_in(text: str, usage: Usage | None, case: Case) -> Verdict:
    """Parse the verdict in a reply's text. Raises `BadReplyError` with its usage."""
    try:
        verdict = parse(text, case.passages)
        check_anchored(verdict, case)
    except ReplyError as error:
        raise BadReplyError(error.kind, usage) from None
    return verdict


def failure_of(status: int, name: str, headers: Mapping[str, str]) -> CallError:
    """Classify an HTTP error. Pure."""
    if status in STOPPING:
        return StoppedError(f"{name}: {STOPPING[status]}; see judge.api_key", status)
    if status in {408, 409, 429} or status >= 500:
        return TryAgainError(name, pause_s=max(retry_after(headers), limits(headers)[1]))
    return RejectedError(name)


def refusal_of(status: int, name: str, headers: Mapping[str, str]) -> CallError:
    """Classify an HTTP error of a model request: "not found" means the model or the API itself. Pure."""
    if status == 404:
        return StoppedError(f"{name}: model or address not found; check judge.model and judge.base_url", status)
    return failure_of(status, name, headers)


def usage_of(usage: Any) -> Usage:
    """Convert the API's token counts."""
    return Usage(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cache_read=usage.cache_read_input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
    )


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a reply asks to wait, or 0."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        with contextlib.suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) / unit)
    return 0.0


def limits(headers: Mapping[str, str], now: datetime | None = None) -> tuple[int | None, float]:
    """Return the limit of requests per minute, if known, and the seconds until an exhausted limit resets."""
    limit, pause = None, 0.0
    for what in ("requests", "input-tokens", "output-tokens"):
        prefix = f"anthropic-ratelimit-{what}-"
        with contextlib.suppress(KeyError, ValueError):
            if what == "requests":
                limit = max(1, int(headers[prefix + "limit"]))
            if int(headers[prefix + "remaining"]) <= 0:
                reset = datetime.fromisoformat(headers[prefix + "reset"])
                pause = max(pause, (reset - (now or datetime.now(UTC))).total_seconds())
    return limit, pause
