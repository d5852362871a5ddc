"""Systems under test: an HTTP service, a Python function, or a command.

Responses are parsed by `answers`, in any of its forms.

An error's text may quote the question, so only its class is kept with the place in a function's code, or the HTTP
status.
"""

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlsplit

from assay_evals.error_location import error_location
from assay_evals.errors import TargetError, TargetUsageError
from assay_evals.field_names import nearest
from assay_evals.target.redaction import command_words, redact_target, redact_words
from assay_evals.target.response import TargetResponse
from assay_evals.target.response_parsing import parse_response
from assay_schema.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    import httpx

#: Environment variable with the bearer token that is sent to an HTTP target.
WORKSPACE_HEADER = "X-Workspace-ID"
#: What an address may contain in braces.
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class Question:
    """A question for a target: `query`, `limit`, and the options of a captured row or a case."""

    query: str
    limit: int = 10
    tool_name: str = "query"
    detail: str | None = None
    expand_enabled: bool | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


class Target(Protocol):
    """A system under test."""

    async def ask(self, question: Question) -> TargetResponse:
        """Return one answer. Raises `TargetError`."""

    async def close(self) -> None:
        """Release connections and processes."""


class HttpTarget:
    """A service over HTTP: `POST` of the question as JSON, or `GET` if the address contains `{query}`."""

    def __init__(
        self,
        url: str,
        *,
        workspace: str | None = None,
        timeout_s: float = 30.0,
        connections: int = 5,
        keep_message: bool = False,
    ) -> None:
        import httpx

        try:
            host = urlsplit(url).hostname
        except ValueError:
            host = None
        if not url.startswith(("http://", "https://")) or not host:
            raise TargetUsageError(f"{redact_target(url)!r} is not a valid address: use http://host:port/path")
        if unknown := next((each for each in _PLACEHOLDER.findall(url) if each not in ("query", "limit")), None):
            near = nearest(unknown, ("query", "limit"))
            raise TargetUsageError(
                f"{{{unknown}}} in the address is not {{query}} or {{limit}}{near}; write other braces as %7B and %7D"
            )
        headers = {WORKSPACE_HEADER: workspace} if workspace else {}
        if token := os.environ.get(TOKEN_VARIABLE):
            headers["Authorization"] = f"Bearer {token}"
        self._url = url
        self._keep_message = keep_message
        self._errors: tuple[type[Exception], ...] = (httpx.HTTPError, httpx.InvalidURL)
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    async def ask(self, question: Question) -> TargetResponse:
        """Send one request. 408, 429 and 5xx may be retried, other statuses not."""
        started = time.perf_counter()
        response = await self._send(question)
        elapsed = (time.perf_counter() - started) * 1000
        try:
            return parse_response(response.json(), elapsed)
        except ValueError:
            raise TargetError("HTTP body is not JSON") from None

    async def tell(self, question: Question) -> None:
        """Send one request, and ignore the body of its response."""
        await self._send(question)

    async def _send(self, question: Question) -> "httpx.Response":
        try:
            if "{query}" in self._url:
                url = self._url.replace("{query}", quote(question.query, safe="")).replace(
                    "{limit}", str(question.limit)
                )
                response = await self._client.get(url)
            else:
                response = await self._client.post(
                    self._url.replace("{limit}", str(question.limit)), json=_plain(question)
                )
        except self._errors as error:
            raise TargetError(type(error).__name__, retryable=True) from None
        if response.status_code >= 400:
            status = response.status_code
            message = response.text if self._keep_message else None
            raise TargetError(f"HTTP {status}", retryable=status in (408, 429) or status >= 500, target_message=message)
        if response.has_redirect_location:
            raise TargetError(f"HTTP {response.status_code}: redirects are not followed; use the target address")
        return response

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class CallableTarget:
    """A Python function, plain or `async`: called with the query, and the other fields that it names."""

    def __init__(self, function: Callable[..., Any], *, threads: int = 5) -> None:
        self._function = function
        #: The loop's own pool would be smaller than a concurrency asked for, and waiting for it would count as the target's latency.
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="target")
        self._async = inspect.iscoroutinefunction(function)
        try:
            signature = inspect.signature(function)
        except ValueError:
            raise TargetUsageError(
                "the function's parameters cannot be inspected: wrap it in your own function"
            ) from None
        parameters = signature.parameters
        anything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        named = {"limit", "tool_name", "detail", "expand_enabled", "params"}
        self._named = sorted(named if anything else named & set(list(parameters)[1:]))
        try:
            signature.bind("", **dict.fromkeys(self._named))
        except TypeError as error:
            taken = ", ".join(sorted(named))
            raise TargetUsageError(
                f"the function cannot be called with a query ({error}): its first parameter is the query, and each other one "
                f"is one of {taken}, or has a default"
            ) from None

    async def ask(self, question: Question) -> TargetResponse:
        """Make one call; a plain function runs in a thread."""
        return parse_response(*await self._send(question))

    async def tell(self, question: Question) -> None:
        """Make one call, and ignore what the function returns."""
        await self._send(question)

    async def _send(self, question: Question) -> tuple[Any, float]:
        """Return the function's result, and the milliseconds that it took."""
        options = {name: getattr(question, name) for name in self._named}
        call = partial(self._function, question.query, **options)
        try:
            if self._async:
                started = time.perf_counter()
                result = await call()
                elapsed = time.perf_counter() - started
            else:
                result, elapsed = await asyncio.get_running_loop().run_in_executor(self._threads, _timed, call)
        except TargetError:
            raise
        except BaseException as error:
            # `sys.exit()` included: a target must never end the evaluation, least of all with exit code 0.
            if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and _is_cancelled()):
                raise
            raise TargetError(_raised(error)) from error
        return result, elapsed * 1000

    async def close(self) -> None:
        """Release the threads; a call in progress runs to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a call's result and its seconds, without the wait for a thread or the loop."""
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def _is_cancelled() -> bool:
    """True if we are cancelled ourselves: by a deadline, or the end of the run."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _raised(error: BaseException) -> str:
    """Return an error's class and place in the target's code. Its text may quote the question."""
    place = error_location(error)
    return type(error).__name__ + (f" (at {place})" if place else "")


class CommandTarget:
    """A command, started for each question: question as JSON on stdin, answer as JSON on stdout."""

    def __init__(self, command: str, *, keep_message: bool = False) -> None:
        self._arguments = command_words(command)
        self._keep_message = keep_message
        if not self._arguments:
            raise TargetUsageError("the command is empty")
        if shutil.which(self._arguments[0]) is None:
            (program,) = redact_words(self._arguments[:1])
            raise TargetUsageError(f"program {program} was not found or is not executable")

    async def ask(self, question: Question) -> TargetResponse:
        """Run one process."""
        started = time.perf_counter()
        output, message = await self._send(question)
        try:
            return parse_response(json.loads(output), (time.perf_counter() - started) * 1000)
        except ValueError:
            raise TargetError("the command's output is not JSON", target_message=message) from None

    async def tell(self, question: Question) -> None:
        """Run one process, and ignore its output."""
        await self._send(question)

    async def _send(self, question: Question) -> tuple[bytes, str | None]:
        """Return the process's output, and its stderr if messages are kept."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE if self._keep_message else asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise TargetError(f"the command cannot be started: {type(error).__name__}") from None
        try:
            output, errors = await process.communicate(json.dumps(_plain(question)).encode())
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        message = errors.decode(errors="replace") if errors else None
        if process.returncode:
            raise TargetError(f"the command ended with {process.returncode}", target_message=message)
        return output, message

    async def close(self) -> None:
        """Do nothing: each process ended with its answer."""


def open_target(
    name: str,
    *,
    workspace: str | None = None,
    timeout_s: float = 30.0,
    connections: int = 5,
    keep_message: bool = False,
) -> "HttpTarget | CallableTarget | CommandTarget":
    """Open a target by its name: `http://...`, `module:function`, or `command: ...`.

    Raises `TargetUsageError`. `keep_message`: errors include the target's message, the body of a response or a command's
    stderr.
    """
    if name.startswith(("http://", "https://")):
        return HttpTarget(
            name, workspace=workspace, timeout_s=timeout_s, connections=connections, keep_message=keep_message
        )
    if name.startswith("command:"):
        return CommandTarget(name.removeprefix("command:"), keep_message=keep_message)
    module, colon, function = name.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), *function.split(".")]):
        raise TargetUsageError(
            f"{redact_target(name)!r} is not a target: use http://host/path, module:function, or 'command: program --flag'"
        )
    return CallableTarget(load_function(module, function), threads=connections)


def as_target(target: Callable[..., Any] | str | Target, timeout_s: float, connections: int) -> Target:
    """Return a target from a function or a name; an open target is returned unchanged."""
    if isinstance(target, str):
        return open_target(target, timeout_s=timeout_s, connections=connections)
    return CallableTarget(target, threads=connections) if callable(target) else target


def load_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function by its name, from a module in the working directory or installed.

    Raises `TargetUsageError`.
    """
    import sys

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as with `python -m`, a file in the working directory can be imported
    try:
        resolved: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is loaded
        where = f" (at {place})" if (place := error_location(error)) else ""
        what = str(error) if isinstance(error, ImportError) else type(error).__name__
        raise TargetUsageError(f"cannot import {module}: {what}{where}") from error
    whole = resolved
    for part in name.split("."):
        resolved = getattr(resolved, part, None)
    if not callable(resolved):
        near = nearest(name, [each for each in dir(whole) if callable(getattr(whole, each, None))])
        raise TargetUsageError(f"{module} has no function {name}{near}")
    return resolved  # type: ignore[no-any-return]


def _plain(question: Question) -> dict[str, Any]:
    return {key: value for key, value in asdict(question).items() if value is not None and value != {}}
