"""Errors in the form of a ClickHouse server: a numeric code, its name, and its HTTP status."""

from __future__ import annotations

import re

# Only the codes this package raises or maps itself; the engine supplies the rest in its messages.
SYNTAX_ERROR = 62
BAD_ARGUMENTS = 36
NOT_IMPLEMENTED = 48
READONLY = 164
TIMEOUT_EXCEEDED = 159
QUERY_IS_TOO_LARGE = 223
TOO_MANY_SIMULTANEOUS_QUERIES = 202
SESSION_NOT_FOUND = 372
SESSION_IS_LOCKED = 373
QUERY_WAS_CANCELLED = 394
ACCESS_DENIED = 497
AUTHENTICATION_FAILED = 516
USER_SESSION_LIMIT_EXCEEDED = 700
TOO_MANY_ROWS_OR_BYTES = 396
SOCKET_TIMEOUT = 209
INCORRECT_DATA = 117
UNKNOWN_FORMAT = 73
ABORTED = 236
AST_TOO_BIG = 168
TOO_DEEP_RECURSION = 306
STD_EXCEPTION = 1001
CANNOT_WRITE_TO_FILE_DESCRIPTOR = 75

_NAMES = {
    SYNTAX_ERROR: "SYNTAX_ERROR",
    BAD_ARGUMENTS: "BAD_ARGUMENTS",
    NOT_IMPLEMENTED: "NOT_IMPLEMENTED",
    READONLY: "READONLY",
    TIMEOUT_EXCEEDED: "TIMEOUT_EXCEEDED",
    QUERY_IS_TOO_LARGE: "QUERY_IS_TOO_LARGE",
    TOO_MANY_SIMULTANEOUS_QUERIES: "TOO_MANY_SIMULTANEOUS_QUERIES",
    SESSION_NOT_FOUND: "SESSION_NOT_FOUND",
    SESSION_IS_LOCKED: "SESSION_IS_LOCKED",
    QUERY_WAS_CANCELLED: "QUERY_WAS_CANCELLED",
    ACCESS_DENIED: "ACCESS_DENIED",
    AUTHENTICATION_FAILED: "AUTHENTICATION_FAILED",
    USER_SESSION_LIMIT_EXCEEDED: "USER_SESSION_LIMIT_EXCEEDED",
    TOO_MANY_ROWS_OR_BYTES: "TOO_MANY_ROWS_OR_BYTES",
    SOCKET_TIMEOUT: "SOCKET_TIMEOUT",
    INCORRECT_DATA: "INCORRECT_DATA",
    UNKNOWN_FORMAT: "UNKNOWN_FORMAT",
    ABORTED: "ABORTED",
    AST_TOO_BIG: "TOO_BIG_AST",
    TOO_DEEP_RECURSION: "TOO_DEEP_RECURSION",
    STD_EXCEPTION: "STD_EXCEPTION",
    CANNOT_WRITE_TO_FILE_DESCRIPTOR: "CANNOT_WRITE_TO_FILE_DESCRIPTOR",
}

# The server's own mapping of exception codes to HTTP statuses; every other code is 500.
_STATUS = {
    **dict.fromkeys((516, 192, 193, 511 + 1, 497), 403),
    194: 401,
    **dict.fromkeys(
        (36, 6, 25, 26, 38, 41, 72, 427, 27, 376, 675, 676, 15, 44, 8, 168, 167, 62, 117, 53, 321, 212), 400
    ),
    **dict.fromkeys((60, 46, 47, 50, 56, 81, 115, 99, 63, 73, 336, 78, 511), 404),
    QUERY_IS_TOO_LARGE: 413,
    NOT_IMPLEMENTED: 501,
    209: 503,
    76: 503,
    439: 503,
    TOO_MANY_SIMULTANEOUS_QUERIES: 500,
    381: 411,
    TIMEOUT_EXCEEDED: 408,
}

_CODE = re.compile(r"Code: (\d+)")
_VERSION = re.compile(r"\(version [^)]*\)")


class StoreError(Exception):
    """An error response.

    Attributes:
        code: ClickHouse's numeric error code.
        text: the message for the client, without the `Code: N.` prefix. It may quote the client's own statement,
            so it goes to the client and never to a log.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code)
        self.code = code
        self.text = text

    @property
    def http_status(self) -> int:
        """HTTP status of a ClickHouse server for this code."""
        return _STATUS.get(self.code, 500)

    def body(self, version: str) -> str:
        """Return the message as a ClickHouse server writes it in the response body."""
        text = self.text.strip()
        if not text.startswith("Code:"):
            text = f"Code: {self.code}. DB::Exception: {text} ({_NAMES.get(self.code, 'ERROR')})"
        if not _VERSION.search(text[-60:]):
            text = f"{text} (version {version})"
        return text + "\n"


def from_engine(failure: BaseException) -> StoreError:
    """Convert an engine failure (`Code: N. DB::Exception: ...`) to a StoreError with its code and text."""
    text = str(failure)
    match = _CODE.search(text)
    start = match.start() if match else 0
    return StoreError(int(match.group(1)) if match else STD_EXCEPTION, text[start:])
