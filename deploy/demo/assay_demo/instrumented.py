"""`python -m assay_demo.instrumented`: an assistant that knows OpenTelemetry and nothing of Assay.

It answers questions in the steps of an agent, and its spans follow OpenTelemetry's GenAI conventions. The standard
variables say where they go: `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS`. Progress goes to stderr. The
last line of stdout is one JSON object: service, questions, spans (that were sent), expected (events by kind), planted (personal
data by family). Exit codes: 0 all spans are sent, 1 some are lost.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanKind, Tracer

from assay_demo.corpus import Document, load_corpus
from assay_demo.golden import Case, read_cases
from assay_demo.pii import plant
from assay_demo.search import Hit, Search
from assay_demo.service import CONTEXTS, MODEL, extract_answer

SERVICE = "stdlib-assistant"
#: The modules that it knows: a tenth of the corpus, which is read in half a second.
MODULES = ("asyncio", "csv", "datetime", "json", "pathlib", "random", "re", "shutil", "tempfile", "time")
#: Number of questions without planted values.
QUESTIONS = 28
#: Number of characters of the page that it opens.
PAGE_MAX = 400
#: The event that a span of each operation becomes. The answer of an agent is that of its last model call.
EVENTS = {"retrieval": "retrieval", "execute_tool": "tool_call", "chat": "answer"}


class CountingExporter(OTLPSpanExporter):
    """The exporter of OpenTelemetry. `sent` counts the spans that the receiver accepted."""

    sent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        result = super().export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return result


class Assistant:
    """Retrieves, opens the best page with a tool, and answers. Each step is a span."""

    def __init__(self, search: Search, tracer: Tracer) -> None:
        self._search = search
        self._tracer = tracer
        #: Number of spans by operation.
        self.spans = Counter[str]()

    def ask(self, question: str, words: str) -> str:
        """Answer a question in one trace. `words` is the question without what people paste around it."""
        with self._span("invoke_agent", "librarian", {"gen_ai.agent.name": "librarian"}):
            hits = self._retrieve(question, words)
            page = self._open(hits[0].document, question)
            return self._chat(question, hits, page)

    def _retrieve(self, question: str, words: str) -> tuple[Hit, ...]:
        with self._span("retrieval", "stdlib", {"gen_ai.data_source.id": "stdlib"}) as span:
            hits = self._search.search(words, CONTEXTS, expand=True).hits
            found = [{"id": hit.document.id, "score": hit.score, "content": hit.document.text} for hit in hits]
            span.set_attribute("gen_ai.retrieval.query.text", question)
            span.set_attribute("gen_ai.retrieval.documents", json.dumps(found))
        return hits

    def _open(self, document: Document, question: str) -> str:
        with self._span("execute_tool", "open_page", {"gen_ai.tool.name": "open_page"}) as span:
            page = document.text[:PAGE_MAX]
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps({"page": document.id, "reason": question}))
            span.set_attribute("gen_ai.tool.call.result", json.dumps({"page": document.id, "text": page}))
        return page

    def _chat(self, question: str, hits: tuple[Hit, ...], page: str) -> str:
        with self._span("chat", MODEL, {"gen_ai.request.model": MODEL}, SpanKind.CLIENT) as span:
            answer = extract_answer(hits).text
            asked = [_message("user", question), _message("tool", page)]
            span.set_attribute("gen_ai.input.messages", json.dumps(asked))
            span.set_attribute("gen_ai.output.messages", json.dumps([_message("assistant", answer)]))
        return answer

    def _span(
        self, operation: str, name: str, attributes: Mapping[str, str], kind: SpanKind = SpanKind.INTERNAL
    ) -> Any:
        """Start a span below the current one, with the name and the operation of the conventions."""
        self.spans[operation] += 1
        named = {"gen_ai.operation.name": operation, "gen_ai.provider.name": "assay-demo", **attributes}
        return self._tracer.start_as_current_span(f"{operation} {name}", kind=kind, attributes=named)


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def answerable(search: Search) -> list[Case]:
    """Return the golden questions for which the search finds a document."""
    return [case for case in read_cases() if case.relevant and search.search(case.query, 1, expand=True).hits]


def main(arguments: list[str] | None = None) -> int:
    """Ask questions, some with planted values, and send the spans. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m assay_demo.instrumented")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help=f"number of questions (default {QUESTIONS})")
    parser.add_argument("--seed", type=int, default=0, help="random seed of questions and planted values (default 0)")
    options = parser.parse_args(arguments)
    exporter = CountingExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    search = Search(load_corpus(modules=MODULES))
    assistant = Assistant(search, provider.get_tracer("assay_demo"))
    cases = answerable(search)
    for case in random.Random(options.seed).sample(cases, options.questions):  # noqa: S311  (which questions)
        assistant.ask(case.query, case.query)
    planted, by_id = plant(cases, seed=options.seed, per_family=1), {case.id: case for case in cases}
    for each in planted:
        assistant.ask(each.text, by_id[each.case_id].query)
    provider.shutdown()  # sends the spans that wait
    made = assistant.spans.total()
    print(f"assay_demo: {exporter.sent} of {made} spans sent over OTLP", file=sys.stderr, flush=True)
    report = {
        "service": SERVICE,
        "questions": options.questions + len(planted),
        "spans": exporter.sent,
        "expected": {kind: assistant.spans[operation] for operation, kind in EVENTS.items()},
        "planted": Counter(each.planted.family for each in planted),
    }
    print(json.dumps(report), flush=True)
    return 0 if exporter.sent == made else 1


if __name__ == "__main__":
    sys.exit(main())
