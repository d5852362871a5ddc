"""Structured logs: one JSON object per line on stderr. Captured text is never logged, only ids."""

import json
import logging
import sys
from datetime import UTC, datetime

from assay_schema.printable import printable
from assay_schema.settings import TelemetrySettings

#: Attributes of a record that this code adds through `extra`; all others are left out.
FIELDS = (
    "stream",
    "entry_id",
    "error_class",
    "reason",
    "deliveries",
    "entries",
    "rows",
    "table",
    "seconds",
    "policy",
    "consumer",
    "code",
    "request_id",
    "key_id",
    "status",
    "at",
)


class JsonFormatter(logging.Formatter):
    """Formats `{"time", "level", "service", "logger", "message", ...}`.

    An exception is logged by class and location, because its text may quote input.
    """

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {field: getattr(record, field) for field in FIELDS if hasattr(record, field)}
        line |= exception_place(record)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """Formats logs for people: time, level, message, then `key=value`, always one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of text."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        extra = {field: getattr(record, field) for field in FIELDS if hasattr(record, field)} | exception_place(record)
        tail = "".join(f" {key}={value}" for key, value in extra.items())
        return printable(f"{time} {record.levelname.lower():7} {record.getMessage()}{tail}")


def exception_place(record: logging.LogRecord) -> dict[str, str]:
    """Return class and innermost location of a record's exception, without its text."""
    if not record.exc_info or record.exc_info[0] is None:
        return {}
    trace = record.exc_info[2]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace else "unknown"
    return {"exception": record.exc_info[0].__name__, "place": place}


def configure_logs(service: str, settings: TelemetrySettings) -> None:
    """Send this process's logs to stderr in the configured form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service) if settings.log_format == "json" else TextFormatter())
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    for chatty in ("httpx", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Each failed attempt raises as well, and its handler logs one line.
    for echoing in (
        "urllib3",
        "clickhouse_connect",
    ):
        logging.getLogger(echoing).setLevel(logging.CRITICAL)
