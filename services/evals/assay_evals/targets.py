"""Systems under test: an HTTP service, a Python function, or a command. Each answers one question at a time, many at once.

What a target returns is read in any of these forms, whichever it speaks:

- a list of ids: `["a", "b"]`;
- a list of objects: `[{"slug": "a", "source_id": "wiki", "score": 1.5}]` (`id` does for `slug`), each perhaps with its `time` (ISO 8601, or
  seconds or milliseconds since 1970), the `actors` it concerns, and the search paths it was `found_by` (each a name, or a list of them);
- an object with such a list under `results` (or `hits`, `data`), and perhaps: `answer`; its `citations`, a list as above, each perhaps with
  the `claim` it is cited for; the passages it was made from as `contexts: [{"id": "a", "text": "..."}]`; and `latency_ms`, the target's own
  measure of its time. Without one, the time until its answer is taken.

An error's text may hold what was asked, so only its class is kept and, of a function, the place in its code, or of HTTP, its status.
"""

import asyncio
import contextlib
import hashlib
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import TypeAdapter, ValidationError

from assay_evals.dataset import Moment
from assay_evals.errors import EvalsError
from assay_evals.places import place_of
from assay_evals.replay import Hit, Retrieved

#: Environment variable with the bearer token that is sent to an HTTP target.
TOKEN_VARIABLE = "ASSAY_TARGET_TOKEN"  # noqa: S105
WORKSPACE_HEADER = "X-Workspace-ID"
_LISTS = ("results", "hits", "data")


class TargetError(Exception):
    """The target did not answer, or not in a form that is known. Its message never holds what was asked or answered.

    `retryable`: whether the same question may fare better in a moment. `said`: what the target itself said of it, where that was asked for;
    it may hold anything.
    """

    def __init__(self, message: str, *, retryable: bool = False, said: str | None = None) -> None:
        super().__init__(message)
        self.retryable, self.said = retryable, said


class TargetUsageError(EvalsError):
    """A target that cannot be reached as it was named; says how to name it."""


@dataclass(frozen=True)
class Question:
    """What a target is asked. Beyond `query` and `limit`, what a captured row or a case says of how it was asked."""

    query: str
    limit: int = 10
    tool_name: str = "query"
    detail: str | None = None
    expand_enabled: bool | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


#: What stands for a secret, or what may be one.
MASK = "…"
#: Words of a command that are no values: options, and files of programs.
_LONG = re.compile(r"(--[A-Za-z][A-Za-z0-9_-]*)(=.*)?", re.DOTALL)
_NAME = re.compile(r"[\w./~+-]+")
_PROGRAM = re.compile(r"[\w./~+-]+\.(py|pyz|sh|bash|js|mjs|cjs|ts|rb|pl|php|jar|lua|exe)")


def shown(name: str) -> str:
    """A target's name for files and reports, without secrets.

    An address comes without its user, password, fragment and the values behind `?`; a command with its program, the files of programs
    and the names of its options, and a mark for each other word, since any may be a secret.
    """
    if name.startswith("command:"):
        return " ".join(["command:", *_shown_words(_words(name))])
    if "://" in name:
        try:
            parts = urlsplit(name)
        except ValueError:
            return f"{name.partition('://')[0]}://{MASK}"
        query = "&".join(_shown_parameter(each) for each in parts.query.split("&"))
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query, fragment=""))
    return name


def _shown_parameter(text: str) -> str:
    key, equals, value = text.partition("=")
    if not equals:
        return MASK if text else ""
    return text if not value or value in ("{query}", "{limit}") else f"{key}={MASK}"


def _words(name: str) -> list[str]:
    try:
        return shlex.split(name.removeprefix("command:"))
    except ValueError:
        raise TargetUsageError("the command has a quote that is not closed") from None


def _shown_words(words: Sequence[str]) -> Iterator[str]:
    before = ""
    for place, word in enumerate(words):
        if long := _LONG.fullmatch(word):
            yield f"{long[1]}={MASK}" if long[2] else word
        elif word.startswith("-"):
            yield word if len(word) <= 2 else word[:2] + MASK
        elif (
            _PROGRAM.fullmatch(word)
            or (place == 0 and _NAME.fullmatch(word))
            or (before == "-m" and _NAME.fullmatch(word))
        ):
            yield word
        else:
            yield MASK
        before = word


def seal(name: str, salt: bytes | None = None) -> str | None:
    """What tells apart two targets that `shown` shows alike, and gives away nothing of what it hides; None where it hides nothing.

    A slow hash with a salt (scrypt), so that a short secret cannot be found by trying.
    """
    if shown(name) == name:
        return None
    salt = salt or os.urandom(16)
    return f"{salt.hex()}:{hashlib.scrypt(name.encode(), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()}"


def opens(sealed: str, name: str) -> bool:
    """Whether a seal was made of this name."""
    try:
        return seal(name, bytes.fromhex(sealed.partition(":")[0])) == sealed
    except ValueError:
        return False


class Target(Protocol):
    """A system under test."""

    async def ask(self, question: Question) -> Retrieved:
        """One answer. Raises `TargetError`."""

    async def close(self) -> None:
        """Let go of connections and processes."""


class HttpTarget:
    """A service over HTTP: `POST` of the question as JSON, or `GET` where the address holds `{query}`."""

    def __init__(
        self,
        url: str,
        *,
        workspace: str | None = None,
        timeout_s: float = 30.0,
        connections: int = 5,
        keep_said: bool = False,
    ) -> None:
        import httpx

        try:
            host = urlsplit(url).hostname
        except ValueError:
            host = None
        if not url.startswith(("http://", "https://")) or not host:
            raise TargetUsageError(f"{shown(url)!r} is no address: write http://host:port/path")
        headers = {WORKSPACE_HEADER: workspace} if workspace else {}
        if token := os.environ.get(TOKEN_VARIABLE):
            headers["Authorization"] = f"Bearer {token}"
        self._url, self._keep_said = url, keep_said
        self._errors: tuple[type[Exception], ...] = (httpx.HTTPError, httpx.InvalidURL)
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    async def ask(self, question: Question) -> Retrieved:
        """One request, one answer. 408, 429 and 5xx may be tried again, other statuses not."""
        started = time.perf_counter()
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
        elapsed = (time.perf_counter() - started) * 1000
        if response.status_code >= 400:
            status = response.status_code
            said = response.text if self._keep_said else None
            raise TargetError(f"HTTP {status}", retryable=status in (408, 429) or status >= 500, said=said)
        try:
            return read_answer(response.json(), elapsed)
        except ValueError:
            raise TargetError("HTTP body is not JSON") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class CallableTarget:
    """A Python function, plain or `async`: called with the query, and with those of a question's other fields that it names."""

    def __init__(self, function: Callable[..., Any], *, threads: int = 5) -> None:
        self._function = function
        #: The loop's own pool would be smaller than a concurrency asked for, and waiting for it would count as the target's latency.
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="target")
        self._async = inspect.iscoroutinefunction(function)
        try:
            parameters = inspect.signature(function).parameters
        except ValueError:
            raise TargetUsageError(
                "the function does not say what it is called with: wrap it in one of yours"
            ) from None
        anything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        named = {"limit", "tool_name", "detail", "expand_enabled", "params"}
        self._named = sorted(named if anything else named & set(list(parameters)[1:]))

    async def ask(self, question: Question) -> Retrieved:
        """One call; a plain function runs in a thread."""
        options = {name: getattr(question, name) for name in self._named}
        started = time.perf_counter()
        try:
            if self._async:
                found = await self._function(question.query, **options)
            else:
                call = partial(self._function, question.query, **options)
                found = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except TargetError:
            raise
        except (
            BaseException
        ) as error:  # also `sys.exit()`: what a target does must never end the evaluation, and least of all as passed
            if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and _is_cancelled()):
                raise
            raise TargetError(_raised(error)) from error
        return read_answer(found, (time.perf_counter() - started) * 1000)

    async def close(self) -> None:
        """Let go of the threads; one whose call has not returned goes on until it does."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _is_cancelled() -> bool:
    """Whether it is we who are cancelled: a deadline, or the end of the run."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _raised(error: BaseException) -> str:
    """An error's class and place in the target's code. Its words may hold what was asked."""
    place = place_of(error)
    return type(error).__name__ + (f" (at {place})" if place else "")


class CommandTarget:
    """A command, started for each question: the question as one JSON object on its stdin, the answer as JSON on its stdout."""

    def __init__(self, command: str, *, keep_said: bool = False) -> None:
        self._arguments, self._keep_said = _words(command), keep_said
        if not self._arguments:
            raise TargetUsageError("the command is empty")
        if shutil.which(self._arguments[0]) is None:
            (program,) = _shown_words(self._arguments[:1])
            raise TargetUsageError(f"there is no program {program} that can be run")

    async def ask(self, question: Question) -> Retrieved:
        """One process."""
        started = time.perf_counter()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE if self._keep_said else asyncio.subprocess.DEVNULL,
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
        said = errors.decode(errors="replace") if errors else None
        if process.returncode:
            raise TargetError(f"the command ended with {process.returncode}", said=said)
        try:
            return read_answer(json.loads(output), (time.perf_counter() - started) * 1000)
        except ValueError:
            raise TargetError("the command's output is not JSON", said=said) from None

    async def close(self) -> None:
        """Nothing to let go of: each process ended with its answer."""


def open_target(
    name: str,
    *,
    workspace: str | None = None,
    timeout_s: float = 30.0,
    connections: int = 5,
    keep_said: bool = False,
) -> Target:
    """A target by its name: `http://...`, `module:function`, or `command: ...`. Raises `TargetUsageError`.

    `keep_said`: whether errors carry what the target said of them, the body of a response or what a command wrote on stderr.
    """
    if name.startswith(("http://", "https://")):
        return HttpTarget(name, workspace=workspace, timeout_s=timeout_s, connections=connections, keep_said=keep_said)
    if name.startswith("command:"):
        return CommandTarget(name.removeprefix("command:"), keep_said=keep_said)
    module, colon, function = name.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), *function.split(".")]):
        raise TargetUsageError(
            f"{shown(name)!r} is no target: write http://host/path, module:function, or 'command: program --flag'"
        )
    return CallableTarget(_function(module, function), threads=connections)


def opened(target: Callable[..., Any] | str | Target, timeout_s: float, connections: int) -> Target:
    """A target from a function or a name; one that is open already as it is."""
    if isinstance(target, str):
        return open_target(target, timeout_s=timeout_s, connections=connections)
    return CallableTarget(target, threads=connections) if callable(target) else target


def _function(module: str, name: str) -> Callable[..., Any]:
    import sys

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a file beside the caller is a module, as it is for `python -m`
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever a module does while it is loaded
        where = f" (at {place})" if (place := place_of(error)) else ""
        what = str(error) if isinstance(error, ImportError) else type(error).__name__
        raise TargetUsageError(f"cannot import {module}: {what}{where}") from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise TargetUsageError(f"{module} has no function {name}")
    return found  # type: ignore[no-any-return]


def read_answer(value: Any, elapsed_ms: float) -> Retrieved:
    """What a target returned, in whichever form. Raises `TargetError`."""
    if isinstance(value, Retrieved):
        return value
    whole: Mapping[str, Any] = value if isinstance(value, Mapping) else {"results": value}
    found = next((whole[name] for name in _LISTS if isinstance(whole.get(name), list | tuple)), None)
    if found is None:
        if not isinstance(whole.get("answer"), str):
            raise TargetError("the answer has no list of results")
        found = []
    slugs, sources = [], []
    for each in found:
        slug, source = _hit(each)
        slugs.append(slug)
        sources.append(source)
    facts = [_facts(each) for each in found]
    latency = whole.get("latency_ms")
    known = isinstance(latency, int | float) and not isinstance(latency, bool) and 0 <= latency < float("inf")
    answer = whole.get("answer")
    return Retrieved(
        slugs=slugs,
        latency_ms=float(latency) if known and latency is not None else elapsed_ms,
        sources=sources,
        answer=answer if isinstance(answer, str) else None,
        citations=[(_hit(each)[0], _claim(each)) for each in whole.get("citations") or []],
        contexts=[(_hit(each)[0], each["text"]) for each in whole.get("contexts") or [] if _has_text(each)],
        facts=facts if any(hit is not _NOTHING for hit in facts) else (),
        unread=Counter(name for each in found for name in _unread(each)),
    )


_NOTHING = Hit()
_MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
#: Names of search paths become names of metrics; what does not look like one is passed over.
_PATH_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")


def _facts(value: Any) -> Hit:
    if not isinstance(value, Mapping) or not value.keys() & {"time", "actors", "found_by"}:
        return _NOTHING
    return Hit(_time(value.get("time")), _names(value.get("actors")), _path_names(value.get("found_by")))


def _unread(value: Any) -> Iterator[str]:
    """Fields of a result that say something, and nothing that can be read."""
    if isinstance(value, Mapping):
        for name, read in (("time", _time), ("actors", _names), ("found_by", _path_names)):
            given = value.get(name)
            empty = given is None or (isinstance(given, str | list | tuple) and not given)
            if not empty and not read(given):
                yield name


def _path_names(value: Any) -> tuple[str, ...]:
    return tuple(name for name in _names(value) if _PATH_NAME.fullmatch(name))


def _time(value: Any) -> datetime | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        return _MOMENT.validate_python(value)
    except ValidationError:
        return None


def _names(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return tuple(each for each in listed if isinstance(each, str) and each.strip())


def _claim(value: Any) -> str | None:
    claim = value.get("claim") if isinstance(value, Mapping) else None
    return claim if isinstance(claim, str) else None


def _has_text(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("text"), str)


def _hit(value: Any) -> tuple[str, str | None]:
    if isinstance(value, str):
        return _text(value), None
    if isinstance(value, Mapping):
        slug = value.get("slug", value.get("id", value.get("context_id")))
        source = value.get("source_id")
        if isinstance(slug, str) and slug:
            return _text(slug), _text(source) if isinstance(source, str) else None
    raise TargetError("a result has no slug or id")


def _text(value: str) -> str:
    """JSON can write half a character (a lone surrogate), which no file can hold: one answer's error rather than the end of a run."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise TargetError("a result's id is no text: it holds a lone surrogate") from None
    return value


def _plain(question: Question) -> dict[str, Any]:
    return {key: value for key, value in asdict(question).items() if value is not None and value != {}}
