"""The error of every operation, and one line for the errors of others."""

import re
import sys
from typing import Literal

from assay_access.errors import AccessError
from assay_schema.settings import SettingsError

#: What went wrong, for programs: a command exits with 2 on each, a web server answers 503, 403, 404, 422 or 409.
Kind = Literal["unavailable", "refused", "not_found", "invalid", "conflict"]


class OperationError(Exception):
    """An operation cannot be done. Its text is the message, then the `fix`: the setting or command that helps."""

    def __init__(self, kind: Kind, message: str, fix: str = "") -> None:
        super().__init__(f"{message}; {fix}" if fix else message)
        self.kind, self.message, self.fix = kind, message, fix


def explain(error: BaseException) -> str | None:
    """One clear message for an error that is not a defect of Assay, or None when a traceback is what helps."""
    if isinstance(error, OperationError | AccessError | SettingsError):
        return str(error)
    # An error of a client library can only have come from a library that is loaded; loading one to ask would cost start-up time.
    redis = sys.modules.get("redis.exceptions")
    if redis is not None and isinstance(error, redis.RedisError):
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
    """Whether a server took the connection and then did not answer in time, as one that is stopped or overloaded does."""
    while error is not None:
        if type(error).__name__ == "ReadTimeoutError" or str(error).startswith(
            "Timeout reading from"
        ):  # urllib3, redis-py
            return True
        error = error.__cause__ or error.__context__
    return False


def _store_problem(error: BaseException) -> str:
    """The client wraps a refused connection in four layers of words."""
    unreachable = re.search(r"host='([^']+)', port=(\d+)\): Max retries exceeded", str(error))
    return f"cannot connect to {unreachable[1]}:{unreachable[2]}" if unreachable else _first_line(error)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
