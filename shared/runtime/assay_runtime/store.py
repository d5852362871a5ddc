"""Client for the store: ClickHouse over HTTP, whether the embedded default or a server.

`connect` creates a client from settings, `insert_json_rows` writes one batch and checks that all of it was written, and
`reason_of` classifies an error: wait for the store (`db_down`), check the rights (`rls_reject`) or blame the rows
(`check_violation`). Never log an error's own message: a violated constraint quotes the row. `describe` returns what is
safe to keep.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

import clickhouse_connect
import lz4.frame
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError
from urllib3.exceptions import HTTPError

from assay_runtime.causes import causes
from assay_runtime.config import secret
from assay_runtime.store_errors import HTTP_STATUS, REASONS
from assay_schema.failures import Reason
from assay_schema.settings import SettingsError, StoreSettings

__all__ = ["Client", "StoreError", "WrittenRowsError", "connect", "describe", "insert_json_rows", "reason_of"]

#: Every client: an insert is acknowledged only when it is written, never buffered by the engine.
CLIENT_SETTINGS = {"async_insert": 0}

#: Every insert. JSON is read exactly: precise floats, ISO times, no unknown column skipped, no null turned into a
#: default. A batch is parsed in one thread: it is a few MiB, which several threads would only divide. A batch may have
#: any number of days (a replayed spool), so the limit on partitions is off: it would block the batch permanently.
INSERT_SETTINGS = {
    "async_insert": 0,
    "date_time_input_format": "best_effort",
    "precise_float_parsing": 1,
    "input_format_skip_unknown_fields": 0,
    "input_format_null_as_default": 0,
    "input_format_parallel_parsing": 0,
    "max_partitions_per_insert_block": 0,
}


class StoreError(RuntimeError):
    """The store failed, or is not usable. The message names the fix."""


class WrittenRowsError(StoreError):
    """The store reported a different number of written rows: nothing of the batch may be acknowledged."""


def connect(settings: StoreSettings, *, database: str | None = None) -> Client:
    """Return a client, in the database of the views unless `database` names another.

    Safe for several threads; each call is a separate request without a session. Raises `SettingsError` for an invalid
    address, and the driver's errors (see `reason_of`) if the store cannot be reached or refuses the user.
    """
    address = urlsplit(settings.url)
    try:
        port = address.port
    except ValueError:
        raise SettingsError("store.url (or ASSAY_STORE_URL): invalid port: must be 1 to 65535") from None
    if address.scheme not in ("http", "https") or not address.hostname or address.username is not None:
        raise SettingsError(
            "store.url (or ASSAY_STORE_URL) must look like http://host:8123 or https://host:8443; "
            "the user and password are separate settings"
        )
    secure = address.scheme == "https"
    return clickhouse_connect.get_client(
        interface=address.scheme,
        host=address.hostname,
        port=port or (8443 if secure else 8123),
        proxy_path=address.path,
        username=settings.user,
        password=secret(settings.password, settings.password_file, "store.password_file"),
        database=database or settings.database,
        secure=secure,
        verify=True,
        ca_cert=str(settings.tls_ca_file) if settings.tls_ca_file else None,
        connect_timeout=max(1, round(min(settings.timeout_s, 10))),
        send_receive_timeout=max(1, round(settings.timeout_s)),
        compress="lz4",
        query_limit=0,
        autogenerate_session_id=False,
        dedicated_pool=True,
        client_name="assay",
        settings=CLIENT_SETTINGS,
    )


def insert_json_rows(client: Client, table: str, payload: bytes, rows: int, columns: Sequence[str] = ()) -> None:
    """Write `rows` rows of `payload` into `table`; returns once the store confirms that all are written.

    `table` is `database.table`. A row is a JSON object, or, with `columns`, a JSON array of their values in this order,
    which the store parses faster. One row per line.

    At least once: after an error the whole batch may or may not be stored, and must be sent again; the tables make that
    harmless. There is no deduplication token: the engine records one before the rows are in place, so it would treat
    rows lost by a failed commit as stored. Raises `WrittenRowsError`, or the driver's errors (see `reason_of`).
    """
    if not rows:
        return
    summary = client.raw_insert(
        table,
        insert_block=lz4.frame.compress(payload),
        compression="lz4",
        column_names=columns or None,
        fmt="JSONCompactEachRow" if columns else "JSONEachRow",
        settings=INSERT_SETTINGS,
    )
    if summary.written_rows != rows:
        raise WrittenRowsError(
            f"{table}: sent {rows} rows, the store reports {summary.written_rows}; nothing of the batch is acknowledged. "
            "This also happens if a proxy between Assay and the store drops the X-ClickHouse-Summary header."
        )


def reason_of(error: BaseException) -> Reason:
    """Classify an error of the store, from the error and its causes.

    `db_down`: wait and retry, the rows are not to blame. `rls_reject`: the user lacks a right or a quota, an operator
    has to act. `check_violation`: a row violates a rule of the table, so isolate it. `other`: unknown, or the schema is
    older than the code.
    """
    chain = causes(error)
    for link in chain:
        if isinstance(link, WrittenRowsError):
            return Reason.OTHER
        if isinstance(link, ClickHouseError):
            if (code := getattr(link, "code", None)) is not None:
                # Unknown fields mean that the table is older than the code, which is not the row's fault.
                return Reason.OTHER if code == 117 and "Unknown field" in str(link) else REASONS.get(code, Reason.OTHER)
            if status := HTTP_STATUS.search(str(link)):
                return {"401": Reason.RLS_REJECT, "403": Reason.RLS_REJECT}.get(status[1], Reason.DB_DOWN)
    if any(isinstance(link, OperationalError | HTTPError | ConnectionError | TimeoutError | OSError) for link in chain):
        return Reason.DB_DOWN
    return Reason.OTHER


def describe(error: BaseException) -> tuple[str, str]:
    """Return class and detail of an error, safe to log and store.

    These are the engine's name for it and the constraint, never a value.
    """
    for link in causes(error):
        if isinstance(link, StoreError):
            return type(link).__name__, str(link)
        if isinstance(link, ClickHouseError) and (code := getattr(link, "code", None)) is not None:
            name = getattr(link, "name", None) or f"code {code}"
            constraint = str(link).partition("Constraint `")[2].partition("`")[0] if code == 469 else ""
            return str(name), f"violates the constraint {constraint}" if constraint.isidentifier() else f"code {code}"
    return type(error).__name__, ""
