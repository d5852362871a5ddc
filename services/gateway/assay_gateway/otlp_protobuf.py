"""Cut OTLP requests in protobuf into spans and log records, and check these. Pure."""

from collections.abc import Container, Iterator
from functools import lru_cache

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assay_gateway import otlp_wire
from assay_gateway.otlp_form import NAME_MAX, PLACES_CACHED, RESOURCE_NAMES, Form, Group, Ids, OtlpError, Range
from assay_schema.span_entry import Signal

#: The first fields of a span, which every exporter writes first: a trace id of 16 bytes, a span id of 8.
_TRACE, _SPAN = b"\x0a\x10", b"\x12\x08"


class Protobuf(Form):
    """Requests in protobuf."""

    encoding = "protobuf"

    def __init__(self, signal: Signal) -> None:
        self._message: type[Span | LogRecord] = Span if signal == "traces" else LogRecord

    def groups(self, body: bytes) -> Iterator[Group | None]:
        """Yield what is in a request."""
        try:
            yield from otlp_wire.groups(body)
        except otlp_wire.WireError as error:
            raise OtlpError(str(error)) from None

    def ids(self, data: bytes) -> Ids:
        """Return the ids of an item, which is decoded as a whole."""
        message = self._decoded(data)
        return Ids(message.trace_id, message.span_id)

    def of_traces(self, body: bytes, places: list[Range], traces: Container[bytes]) -> Iterator[tuple[bytes, Range]]:
        """Yield the spans of some traces whose first fields are their ids."""
        for begin, end in places:
            trace = body[begin + 2 : begin + 18]
            if trace in traces and body.startswith(_TRACE, begin) and body.startswith(_SPAN, begin + 18):
                yield trace, (begin, end)

    def skeleton(self, data: bytes) -> bytes:
        """Return a span without name, attributes and events."""
        whole = self._decoded(data)
        if not isinstance(whole, Span):
            return b""
        bare = Span(
            trace_id=whole.trace_id,
            span_id=whole.span_id,
            parent_span_id=whole.parent_span_id,
            flags=whole.flags,
            start_time_unix_nano=whole.start_time_unix_nano,
            end_time_unix_nano=whole.end_time_unix_nano,
        )
        return bytes(bare.SerializeToString())

    def names(self, resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
        """Return the names in a resource and a scope."""
        return _resource(resource), _scope(scope)

    def request(self, groups: Iterator[tuple[bytes, bytes, list[bytes]]]) -> bytes:
        """Return a request."""
        return otlp_wire.request(groups)

    def _decoded(self, data: bytes) -> Span | LogRecord:
        try:
            found: Span | LogRecord = self._message.FromString(data)
        except DecodeError:
            raise OtlpError("it cannot be decoded") from None
        return found


@lru_cache(PLACES_CACHED)
def _resource(data: bytes) -> bytes:
    try:
        whole = Resource.FromString(data)
    except DecodeError:
        raise OtlpError("its resource cannot be decoded") from None
    names = {
        attribute.key: attribute.value.string_value[:NAME_MAX]
        for attribute in whole.attributes
        if attribute.key in RESOURCE_NAMES and attribute.value.WhichOneof("value") == "string_value"
    }
    bare = Resource()
    for key, name in names.items():
        bare.attributes.add(key=key).value.string_value = name
    return bytes(bare.SerializeToString())


@lru_cache(PLACES_CACHED)
def _scope(data: bytes) -> bytes:
    try:
        whole = InstrumentationScope.FromString(data)
    except DecodeError:
        raise OtlpError("its scope cannot be decoded") from None
    bare = InstrumentationScope(name=whole.name[:NAME_MAX], version=whole.version[:NAME_MAX])
    return bytes(bare.SerializeToString())
