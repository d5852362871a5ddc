"""Clients of Redis and the store, with the credentials of an identity."""

import asyncio
import contextlib
import logging
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from assay_operations.errors import OperationError, hangs
from assay_schema.settings import FILE_VARIABLE, Settings, StoreSettings

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client

Result = TypeVar("Result")
Identity = Literal[
    "producer", "sre", "exporter", "operator", "owner", "judge", "notifier", "evaluator", "console", "auditor"
]

DEFAULT_DATA = Path("data")


def settings_for(identity: Identity, data: Path) -> Settings:
    """Load settings with the credentials of an identity. Raises `SettingsError` or `OperationError`.

    The file that `ASSAY_CONFIG` names takes precedence. Otherwise the environment and `./assay.toml` apply if they set the address of
    Redis or the store; if not, the file that `assay up` wrote for this identity in its data directory.
    """
    return settings_and_source(identity, data)[0]


def settings_and_source(identity: Identity, data: Path) -> tuple[Settings, str]:
    """Load settings as `settings_for` does, and describe their source."""
    from assay_runtime.config import load_settings

    settings = load_settings()
    if named := os.environ.get(FILE_VARIABLE):
        return settings, f"{named} ({FILE_VARIABLE})"
    if "url" in settings.redis.model_fields_set | settings.store.model_fields_set:
        return settings, "./assay.toml and the environment" if Path("assay.toml").exists() else "the environment"
    file = secrets_file(identity, data)
    try:
        present = file.exists()
        others = present and file.stat().st_mode & 0o077
    except PermissionError:
        raise OperationError(
            "refused",
            f"no permission to read {file}; run this as the user who ran `assay up`, or name a settings file with {FILE_VARIABLE}",
        ) from None
    if others:  # a file that `assay up` wrote is private; one that came with a checkout is not
        raise OperationError(
            "refused",
            f"other users can read {file}, so it is not a file that `assay up` wrote: "
            f"run chmod 600 {file} if it is, or name it with {FILE_VARIABLE}",
        )
    if present:
        return load_settings(file), str(file)
    where = f"./{file.parent}" if not file.is_absolute() else str(file.parent)
    if not file.parent.exists() and (other := _other_data(data)):
        raise OperationError(
            "not_found", f"no {where}, but {other} has settings: pass --data {shlex.quote(str(other))}"
        )
    raise OperationError(
        "not_found",
        f"no {where}: run this in the directory of `make run`, name the data directory with --data, "
        f"or settings with {FILE_VARIABLE}"
        if not file.parent.exists()
        else f"no {file}; `assay up` writes it, or name settings with {FILE_VARIABLE}",
    )


def _other_data(data: Path) -> Path | None:
    """Return the newest directory within a data directory that has settings, such as that of a scenario."""
    try:
        found = max(data.glob("*/secrets"), key=lambda each: each.stat().st_mtime, default=None)
    except OSError:
        return None
    return found.parent if found else None


def secrets_file(identity: Identity, data: Path) -> Path:
    """Return the settings file that `assay up` writes for an identity."""
    return data / "secrets" / f"{identity}.toml"


#: The engine's error codes for a missing table or database, for a refused user, and for a right that the user lacks.
_NOT_MIGRATED, _REFUSED, _NO_RIGHT = {60, 81}, {192, 193, 194, 516}, 497
#: The engine's error code while the store is starting or stopping.
STARTS_OR_STOPS = 236


#: Timeout of the store's first answer in seconds; it takes milliseconds. Later answers have `store.timeout_s`.
_FIRST_ANSWER_S = 10.0


@contextlib.contextmanager
def open_store(settings: StoreSettings, *, database: str | None = None) -> Iterator["Client"]:
    """Open a client of the store. Its errors within the block become `OperationError`s with a fix."""
    from urllib3 import Timeout

    from assay_runtime.store import connect

    first = settings.model_copy(update={"timeout_s": min(settings.timeout_s, _FIRST_ANSWER_S)})
    with store_errors(first, answered=False):
        client = connect(first, database=database)
    with contextlib.closing(client), store_errors(settings):
        client.timeout = Timeout(connect=first.timeout_s, read=settings.timeout_s)  # type: ignore[attr-defined]
        yield client


@contextlib.contextmanager
def store_errors(settings: StoreSettings, *, answered: bool = True) -> Iterator[None]:
    """Turn the store's errors within the block into `OperationError`s with a fix.

    `answered`: whether the store has answered this client before.
    """
    from clickhouse_connect.driver.exceptions import ClickHouseError

    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())  # its exceptions carry the same text
    try:
        yield
    except ClickHouseError as error:
        raise OperationError("unavailable", f"store: {_explained(error, settings, answered)}") from error


def _explained(error: Exception, settings: StoreSettings, answered: bool) -> str:
    code = getattr(error, "code", None)
    if code == STARTS_OR_STOPS:
        return (
            f"{settings.url} is starting or stopping; wait a moment, and see its log and `assay doctor` if that lasts"
        )
    if hangs(error) and not answered:
        return (
            f"{settings.url} gave no answer within {settings.timeout_s:g} s: it hangs or is overloaded. See its "
            "log and `assay doctor`, restart it, or correct store.url (ASSAY_STORE_URL)"
        )
    if hangs(error):
        return (
            f"{settings.url} gave no answer within {settings.timeout_s:g} s: it hangs or is overloaded (see its "
            "log), or the query takes longer than store.timeout_s (ASSAY_STORE_TIMEOUT_S)"
        )
    if code is None and "Code: " not in str(error):
        return f"no answer at {settings.url}; start it (assay up starts an embedded one), or correct store.url (ASSAY_STORE_URL)"
    message = engine_message(str(error))
    if code == _NO_RIGHT and f"{settings.base_database}." in message:
        message = message.replace(
            "default: Not enough", f"{settings.user}: Not enough"
        )  # the embedded engine has one user
        return f"{message}; read the views, without a database in their names: assay query 'SHOW TABLES'"
    if code in _NOT_MIGRATED:
        return f"{message}; if tables are missing, run: assay migrate"
    return (
        f"{message}; see store.user and store.password (ASSAY_STORE_USER, ASSAY_STORE_PASSWORD)"
        if code in _REFUSED
        else message
    )


def engine_message(text: str) -> str:
    """Extract the engine's code and message from a driver's error. Pure."""
    match = re.search(r"Code: \d+\. DB::Exception: .*", text, re.DOTALL)
    message = " ".join((match[0] if match else text).replace("DB::Exception: ", "").split())
    message = re.sub(r" ?\(version [^)]*\)+| ?\(for url [^)]*\)", "", message)
    return message if len(message) <= 600 else message[:600] + " …"


def run_with_redis(identity: Identity, data: Path, work: Callable[["Redis", Settings], Awaitable[Result]]) -> Result:
    """Run an operation with a Redis client of an identity, and close the client."""
    settings = settings_for(identity, data)
    return with_redis(settings, lambda client: work(client, settings))


def with_redis(settings: Settings, work: Callable[["Redis"], Awaitable[Result]]) -> Result:
    """Run asynchronous work with a Redis client, in a new event loop, and close the client.

    Call it from a thread without a running event loop.
    """
    from assay_runtime.connection import connect as connect_redis

    async def run() -> Result:
        # No retries: a step whose answer was lost may have taken effect, and would be miscounted.
        client = connect_redis(settings.redis, attempts=0)
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(run())
