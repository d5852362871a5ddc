"""Sort the spans, or log records, of a request by trace, as entries of the stream `spans`. Pure.

Spans of other kinds are accepted and dropped. Those that share a trace with a span about AI keep their ids and times
only: they show which of the others is inside which.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from assay_access.api_keys import KeyRecord
from assay_gateway.ai_marks import LOG_MARKS, MARKS, Marks, warning, without_content
from assay_gateway.otlp_form import Form, Group, OtlpError
from assay_gateway.otlp_json import Json
from assay_gateway.otlp_protobuf import Protobuf
from assay_gateway.refusal import malformed
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.span_entry import Signal, SpanEntry

#: Largest span, and most bytes of the spans of an entry: the rest is for its head, resource and scope.
SPANS_MAX_BYTES = ENTRY_MAX_BYTES - 16 * 1024
#: Most spans of an entry.
GATHERED_MAX = 1_000

FORMS: dict[tuple[Signal, bool], Form] = {
    ("traces", True): Protobuf("traces"),
    ("traces", False): Json("traces"),
    ("logs", True): Protobuf("logs"),
    ("logs", False): Json("logs"),
}


class Item(NamedTuple):
    """An encoded span or log record, and the encoded names of its resource and scope."""

    resource: bytes
    scope: bytes
    data: bytes


@dataclass
class SpanBatch:
    """The spans of a request: entries to append, and what was rejected."""

    record: KeyRecord
    signal: Signal
    binary: bool
    entries: list[bytes] = field(default_factory=list)
    #: Number of accepted spans about AI.
    accepted: int = 0
    #: Number of accepted and dropped spans.
    plain: int = 0
    #: Number of rejections by rule.
    rules: Counter[str] = field(default_factory=Counter)
    #: Number of spans without content, by what turns it on.
    remedies: Counter[str] = field(default_factory=Counter)
    _detail: str = ""

    @property
    def rejected(self) -> int:
        """Number of rejected spans."""
        return self.rules.total()

    @property
    def message(self) -> str:
        """Text of the answer; empty if nothing is to be said."""
        why = f"{self.rejected} rejected: {self._detail}" if self.rejected else ""
        return "; ".join(filter(None, (why, warning(self.remedies))))

    def read(self, body: bytes) -> Iterator[None]:
        """Sort a body, step by step. Raises `RefusedError` if it is not a request as a whole."""
        form, marks = FORMS[self.signal, self.binary], Marks(body, MARKS if self.signal == "traces" else LOG_MARKS)
        traces: dict[bytes, list[Item]] = {}
        others: list[Group] = []
        try:
            for group in form.groups(body):
                yield
                if group is None:
                    continue
                plain = []
                for place in group.places:
                    begin, end = place
                    if end <= marks.clear or not (yield from marks.within(begin, end)):
                        plain.append(place)
                    else:
                        self._sort(form, Item(group.resource, group.scope, body[begin:end]), traces)
                        yield
                self.plain += len(plain)
                others.append(group._replace(places=plain))
        except OtlpError as error:
            raise malformed("invalid_otlp", f"{error}; nothing was stored") from None
        if self.signal == "traces" and traces:
            yield from self._bones(form, body, others, traces)
        for trace, members in traces.items():
            for entry in self._entries(form, trace.hex(), members):
                self.entries.append(entry)
                yield

    def _sort(self, form: Form, item: Item, traces: dict[bytes, list[Item]]) -> None:
        """Put a span about AI with its trace, or reject it."""
        if len(item.data) > SPANS_MAX_BYTES:
            self._reject("too_large", f"a span is larger than {SPANS_MAX_BYTES} bytes")
            return
        try:
            ids = form.ids(item.data)
            resource, scope = form.place(item.resource, item.scope)
        except OtlpError as error:
            self._reject("undecodable", f"a span: {error}")
            return
        if not ids.valid(with_span=self.signal == "traces"):
            self._reject("invalid_ids", "trace ids have 16 bytes and span ids 8, and neither is zero")
        else:
            self.accepted += 1
            if self.signal == "traces" and (remedy := without_content(item.data)):
                self.remedies[remedy] += 1
            traces.setdefault(ids.trace, []).append(Item(resource, scope, item.data))

    def _reject(self, rule: str, detail: str) -> None:
        self.rules[rule] += 1
        self._detail = self._detail or detail

    @staticmethod
    def _bones(form: Form, body: bytes, others: list[Group], traces: dict[bytes, list[Item]]) -> Iterator[None]:
        """Add the ids and times of the other spans to their traces."""
        for group in others:
            yield
            places = [place for place in group.places if place[1] - place[0] <= SPANS_MAX_BYTES]
            for found in form.of_traces(body, places, traces):
                yield
                if found is None:
                    continue
                trace, (begin, end) = found
                try:
                    bare, (resource, scope) = form.skeleton(body[begin:end]), form.place(group.resource, group.scope)
                except OtlpError:
                    continue
                if form.ids(bare).valid(with_span=True):
                    traces[trace].append(Item(resource, scope, bare))

    def _entries(self, form: Form, trace_id: str, members: list[Item]) -> Iterator[bytes]:
        group: list[Item] = []
        size = 0
        for item in members:
            weight = len(item.data) + len(item.resource) + len(item.scope)
            if group and (size + weight > SPANS_MAX_BYTES or len(group) == GATHERED_MAX):
                yield self._entry(form, trace_id, group)
                group, size = [], 0
            group.append(item)
            size += weight
        yield self._entry(form, trace_id, group)

    def _entry(self, form: Form, trace_id: str, members: list[Item]) -> bytes:
        places: dict[Any, list[bytes]] = {}
        for resource, scope, data in members:
            places.setdefault((resource, scope), []).append(data)
        body = form.request((resource, scope, items) for (resource, scope), items in places.items())
        record = self.record
        return SpanEntry(record.project, record.service or "", trace_id, self.signal, form.encoding, body).encoded()
