"""Parse an HTTP request: pure functions from its URL, headers and form to values."""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay_store.errors import AUTHENTICATION_FAILED, BAD_ARGUMENTS, NOT_IMPLEMENTED, UNKNOWN_FORMAT, StoreError

# Parameters of the HTTP interface itself; any other parameter of the URL is a setting of the query.
_INTERFACE = frozenset(
    {
        "query", "database", "default_format", "user", "password", "quota_key", "query_id", "session_id", "session_timeout",
        "session_check", "close_session", "buffer_size", "wait_end_of_query", "compress", "decompress", "stacktrace",
        "role", "client_protocol_version", "enable_http_compression", "http_zlib_compression_level",
        "send_progress_in_http_headers", "http_headers_progress_interval_ms", "http_wait_end_of_query",
        "http_response_buffer_size", "cancel_http_readonly_queries_on_client_close", "add_http_cors_header",
        "http_write_exception_in_output_format", "http_max_field_value_size",
    }
)  # fmt: skip
_MOST_PARAMETERS = 1000
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
# Inserted into a statement, so only a name is allowed: no blank, quotation mark, comment or semicolon.
_FORMAT = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
_NAME = re.compile(r"\w[\w.-]{0,199}")
_EXTERNAL = re.compile(r"(?P<table>.+)_(?P<what>structure|types|format)")


@dataclass(frozen=True)
class Credentials:
    """A name and a password from a request."""

    name: str
    password: str


def credentials(url: Mapping[str, str], headers: Mapping[str, str]) -> Credentials:
    """Return the credentials: X-ClickHouse headers, Basic authentication, or URL parameters, never two.

    Raises:
        StoreError: two kinds at once, or a broken Basic header (516).
    """
    by_header = "x-clickhouse-user" in headers or "x-clickhouse-key" in headers
    authorization = headers.get("authorization", "")
    by_url = "user" in url or "password" in url
    if by_header and authorization:
        raise StoreError(
            AUTHENTICATION_FAILED, "Use either X-ClickHouse-User and X-ClickHouse-Key, or Authorization, not both"
        )
    if by_header:
        return Credentials(headers.get("x-clickhouse-user", "default"), headers.get("x-clickhouse-key", ""))
    if authorization:
        return _basic(authorization)
    if by_url:
        return Credentials(url.get("user", "default"), url.get("password", ""))
    return Credentials("default", "")


def _basic(authorization: str) -> Credentials:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise StoreError(AUTHENTICATION_FAILED, "Only Basic authentication is supported")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as failure:
        raise StoreError(
            AUTHENTICATION_FAILED, "The Authorization header is not valid Basic authentication"
        ) from failure
    name, _, password = decoded.partition(":")
    return Credentials(name, password)


@dataclass(frozen=True)
class External:
    """A table sent with a query.

    Attributes:
        columns: `name Type, ...`.
        format: the format of `rows`.
    """

    name: str
    columns: str
    format: str
    rows: bytes


@dataclass
class QueryRequest:
    """All values of a request except its body."""

    sql: str = ""
    database: str = ""
    default_format: str = "TabSeparated"
    query_id: str = ""
    session_id: str = ""
    session_timeout: int | None = None
    session_check: bool = False
    wait_end_of_query: bool = False
    protocol_version: int = 0
    compress_response: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    externals: list[External] = field(default_factory=list)


def query_request(
    url: Mapping[str, str], headers: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> QueryRequest:
    """Parse the URL (and a form's fields) and headers.

    Args:
        url: parameters; of one given twice the last counts.
        headers: by lower-case name.
        files: a multipart form's parts that are tables.

    Raises:
        StoreError: a value cannot be read, or what it asks for is not implemented.
    """
    for name in ("compress", "decompress"):
        if _flag(url.get(name, "0")):
            raise StoreError(NOT_IMPLEMENTED, f"{name}=1 is not supported: use Content-Encoding and Accept-Encoding")
    if "role" in url:
        raise StoreError(NOT_IMPLEMENTED, "The parameter role is not supported: a user has one role")
    described, settings = _described(url, files or {})
    return QueryRequest(
        sql=url.get("query", ""),
        database=_database(url.get("database") or headers.get("x-clickhouse-database", "")),
        default_format=_format(
            url.get("default_format") or headers.get("x-clickhouse-format", "") or "TabSeparated", "default_format"
        ),
        query_id=url.get("query_id", ""),
        session_id=url.get("session_id", ""),
        session_timeout=_number("session_timeout", url["session_timeout"]) if "session_timeout" in url else None,
        session_check=_flag(url.get("session_check", "0")),
        wait_end_of_query=_flag(url.get("wait_end_of_query", "0")) or _flag(url.get("http_wait_end_of_query", "0")),
        protocol_version=_number("client_protocol_version", url.get("client_protocol_version", "0")),
        compress_response=_flag(url.get("enable_http_compression", "0")),
        settings=settings,
        params={name[6:]: value for name, value in url.items() if name.startswith("param_")},
        externals=described,
    )


def _described(url: Mapping[str, str], files: Mapping[str, bytes]) -> tuple[list[External], dict[str, str]]:
    tables: dict[str, dict[str, str]] = {name: {} for name in files}
    settings: dict[str, str] = {}
    for name, value in url.items():
        if name in _INTERFACE or name.startswith("param_"):
            continue
        match = _EXTERNAL.fullmatch(name)
        if match and match["table"] in tables:
            tables[match["table"]][match["what"]] = value
            continue
        if not _SETTING.fullmatch(name):
            raise StoreError(BAD_ARGUMENTS, f"{name!r} is not a name of a setting")
        settings[name] = value
    return [_external(name, tables[name], files[name]) for name in files], settings


def _external(name: str, described: Mapping[str, str], rows: bytes) -> External:
    if not _NAME.fullmatch(name):
        raise StoreError(BAD_ARGUMENTS, "The name of an external table has letters, digits, _, . and - only")
    columns = described.get("structure", "")
    if not columns and "types" in described:
        columns = ", ".join(f"_{index} {kind}" for index, kind in enumerate(_split(described["types"]), 1))
    if not columns:
        raise StoreError(BAD_ARGUMENTS, f"External table {name} needs {name}_structure or {name}_types")
    if described.get("format", "").lower() == "values":
        raise StoreError(
            NOT_IMPLEMENTED, f"External table {name}: the format Values is not supported, use TabSeparated"
        )
    return External(name, columns, _format(described.get("format") or "TabSeparated", f"{name}_format"), rows)


def _format(name: str, where: str) -> str:
    if not _FORMAT.fullmatch(name):
        raise StoreError(UNKNOWN_FORMAT, f"{where} is not the name of a format: letters and digits only")
    return name


def _database(name: str) -> str:
    if name and not _NAME.fullmatch(name):
        raise StoreError(BAD_ARGUMENTS, "database is not a name: letters, digits, _, . and - only")
    return name


def _split(types: str) -> list[str]:
    found, depth, start = [], 0, 0
    for index, character in enumerate(types):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            found.append(types[start:index])
            start = index + 1
    return [*found, types[start:]]


def parameters(query_string: bytes) -> dict[str, str]:
    """Parse the parameters of a URL; the last of duplicates counts. Non-UTF-8 bytes become surrogates.

    Raises:
        StoreError: there are too many (36).
    """
    text = query_string.decode("utf-8", "surrogateescape")
    try:
        return dict(
            urllib.parse.parse_qsl(
                text, keep_blank_values=True, errors="surrogateescape", max_num_fields=_MOST_PARAMETERS
            )
        )
    except ValueError:
        raise StoreError(BAD_ARGUMENTS, f"A URL has at most {_MOST_PARAMETERS} parameters") from None


def _flag(value: str) -> bool:
    return value.strip().lower() in ("1", "true")


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise StoreError(BAD_ARGUMENTS, f"{name} is a whole number") from None
