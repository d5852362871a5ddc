"""The error of every operation, and one-line messages for the errors of libraries."""

import re
import sys
from typing import Literal

from assay_access.errors import AccessError
from assay_runtime.causes import causes
from assay_schema.settings import SettingsError

#: Kind of error, for programs: a command exits with 2 on each, a web server answers 503, 403, 404, 422 or 409.
Kind = Literal["unavailable", "refused", "not_found", "invalid", "conflict"]


class OperationError(Exception):
    """An operation failed. Its text is the message and the `fix`: the setting or command that helps."""

    def __init__(self, kind: Kind, message: str, fix: str = "") -> None:
        super().__init__(f"{message}; {fix}" if fix else message)
        self.kind = kind
        self.message = message
        self.fix = fix


def explain(error: BaseException) -> str | None:
    """Return a one-line message for an error that is not a bug of Assay; None if a traceback helps more."""
    if isinstance(error, OperationError | AccessError | SettingsError):
        return str(error)
    # An error of a client library comes from a library that is loaded; importing one for this check would cost start-up time.
    redis = sys.modules.get("redis.exceptions")
    if redis is not None and isinstance(error, redis.RedisError):
        if hangs(error):
            return "Redis accepts connections but does not answer: it hangs or is overloaded; see its log and `assay doctor`, or restart it"
        return f"Redis: {_first_line(error)} (is it running? see redis.url, or start everything with: assay up)"
    store = sys.modules.get("clickhouse_connect.driver.exceptions")
    if store is not None and isinstance(error, store.Error):
        return f"store: {_store_problem(error)} (is it running? see store.url, or start everything with: assay up)"
    evals = sys.modules.get("assay_evals.errors")
    if evals is not None and isinstance(error, evals.EvalsError):
        return str(error)
    runtime = sys.modules.get("assay_runtime.store")
    if runtime is not None and isinstance(error, runtime.StoreError):
        return str(error)
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        return _first_line(error)
    return None


def hangs(error: BaseException | None) -> bool:
    """Return True if a server did not refuse the connection, and did not answer in time."""
    # urllib3, redis-py. A queue of connections that is full answers none: a refused connection is another error.
    return any(
        type(each).__name__ in ("ReadTimeoutError", "ConnectTimeoutError")
        or str(each).startswith("Timeout reading from")
        for each in causes(error)
    )


def _store_problem(error: BaseException) -> str:
    """Return the cause of a store error: the client wraps a refused connection in four layers of text."""
    unreachable = re.search(r"host='([^']+)', port=(\d+)\): Max retries exceeded", str(error))
    return f"cannot connect to {unreachable[1]}:{unreachable[2]}" if unreachable else _first_line(error)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
