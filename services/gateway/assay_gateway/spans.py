"""Sort the spans, or log records, of a request by trace, as entries of the stream `spans`. Pure.

Spans of other kinds are accepted and dropped. Those that share a trace with a span about AI keep their ids and times
only: they show which of the others is inside which.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from assay_access.api_keys import KeyRecord
from assay_gateway.ai_marks import LOG_MARKS, MARKS, is_about_ai, warning, without_content
from assay_gateway.otlp_form import Form, Item, OtlpError
from assay_gateway.otlp_json import Json
from assay_gateway.otlp_protobuf import Protobuf
from assay_gateway.refusal import malformed
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.span_entry import Signal, SpanEntry

#: Most spans of a request.
SPANS_MAX = 50_000
#: Largest span, and most bytes of the spans of an entry: the rest is for its head, resource and scope.
SPANS_MAX_BYTES = ENTRY_MAX_BYTES - 16 * 1024

#: Bytes that are searched in one step, and those of two steps: longer than any mark.
_SEARCHED, _OVERLAP = 1024 * 1024, 64

FORMS: dict[tuple[Signal, bool], Form] = {
    ("traces", True): Protobuf("traces"),
    ("traces", False): Json("traces"),
    ("logs", True): Protobuf("logs"),
    ("logs", False): Json("logs"),
}


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
        form, marks = FORMS[self.signal, self.binary], MARKS if self.signal == "traces" else LOG_MARKS
        traces: dict[bytes, list[Item]] = {}
        others: list[Item] = []
        try:
            if not (yield from _search(body, marks)):
                for count in form.count(body):
                    self.plain += count
                    yield
                return
            for number, item in enumerate(form.items(body)):
                if number > SPANS_MAX:
                    raise malformed("too_many_spans", f"more than {SPANS_MAX} spans in a request; send smaller batches")
                if item is not None and (yield from _search(item.data, marks)):
                    self._sort(form, item, traces)
                    yield
                elif item is not None:
                    self.plain += 1
                    if len(item.data) <= SPANS_MAX_BYTES:
                        others.append(item)
                yield
        except OtlpError as error:
            raise malformed("invalid_otlp", f"{error}; nothing was stored") from None
        if self.signal == "traces" and traces:
            yield from self._bones(form, others, traces)
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
    def _bones(form: Form, others: list[Item], traces: dict[bytes, list[Item]]) -> Iterator[None]:
        """Add the ids and times of the other spans to their traces."""
        for item in others:
            members = traces.get(form.trace_of(item.data))
            if members is not None:
                try:
                    bare, (resource, scope) = form.skeleton(item.data), form.place(item.resource, item.scope)
                except OtlpError:
                    continue
                if form.ids(bare).valid(with_span=True):
                    members.append(Item(resource, scope, bare))
            yield

    def _entries(self, form: Form, trace_id: str, members: list[Item]) -> Iterator[bytes]:
        group: list[Item] = []
        size = 0
        for item in members:
            weight = len(item.data) + len(item.resource) + len(item.scope)
            if group and size + weight > SPANS_MAX_BYTES:
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


def _search(data: bytes, marks: tuple[bytes, ...]) -> Generator[None, None, bool]:
    """Return whether something is about AI, step by step: a search takes as long as the worst text makes it."""
    if len(data) <= _SEARCHED:
        return is_about_ai(data, marks)
    for start in range(0, len(data), _SEARCHED):
        if is_about_ai(data[start : start + _SEARCHED + _OVERLAP], marks):
            return True
        yield
    return False
