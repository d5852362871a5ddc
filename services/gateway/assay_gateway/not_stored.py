"""Answer producers that also send OpenTelemetry metrics: accepted, and not stored. Pure.

A refusal would fill their logs, because exporters report each one.
"""

import orjson

MESSAGE = "metrics are not stored"


def metrics_answer(*, binary: bool) -> bytes:
    """Return an `ExportMetricsServiceResponse` with a warning, as protobuf or as JSON.

    `partial_success` is field 1, its `error_message` field 2 (opentelemetry-proto, collector/metrics/v1).
    """
    if not binary:
        return orjson.dumps({"partialSuccess": {"rejectedDataPoints": "0", "errorMessage": MESSAGE}})
    message = MESSAGE.encode()
    partial = b"\x12" + bytes([len(message)]) + message
    return b"\x0a" + bytes([len(partial)]) + partial
