"""Answers to OTLP exporters, as protobuf or as JSON. Pure."""

from typing import Literal

import orjson

from assay_gateway.otlp_wire import field, varint

Signal = Literal["traces", "logs", "metrics"]
#: The type of the body and of its answer.
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords", "metrics": "rejectedDataPoints"}


def success(signal: Signal, rejected: int = 0, message: str = "", *, binary: bool) -> bytes:
    """Return the response to an export: empty, or with `partial_success`.

    `partial_success` is field 1; the number of rejected items is its field 1, `error_message` its field 2
    (opentelemetry-proto, collector). With a message and nothing rejected it is a warning.
    """
    if not rejected and not message:
        return b"" if binary else b"{}"
    if not binary:
        return orjson.dumps({"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": message}})
    number = b"\x08" + varint(rejected) if rejected else b""
    return field(0x0A, number + field(0x12, message.encode()))


def status(message: str) -> bytes:
    """Return a `google.rpc.Status` as protobuf: a refusal in the form that exporters read.

    `message` is field 2. Field 1 is a number of gRPC, which exporters over HTTP do not use.
    """
    return field(0x12, message.encode())
