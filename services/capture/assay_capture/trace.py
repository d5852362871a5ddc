"""The caller's W3C trace context, if this process uses OpenTelemetry.

OpenTelemetry is not a dependency: a program with a current span has imported `opentelemetry.trace` itself.
"""

import sys


def current_traceparent() -> str | None:
    """Return the `traceparent` of the current OpenTelemetry span, or None without one."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        span = trace.get_current_span()
        if span is trace.INVALID_SPAN:
            return None
        context = span.get_span_context()
        if not context.is_valid:
            return None
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    except Exception:  # noqa: BLE001  (a half-imported or foreign OpenTelemetry must not cost the event)
        return None
