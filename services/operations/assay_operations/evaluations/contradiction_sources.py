"""Questions with the documents that they retrieved, captured or asked for now."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.evaluations.files import lines_of
from assay_operations.evaluations.target import TargetConfig
from assay_operations.time_bounds import duration_ms
from assay_runtime.indexed import question_hash

if TYPE_CHECKING:
    from assay_evals.contradictions.pairs import Document, Question
    from assay_evals.target.runner import QueryResult
    from assay_runtime.store import Client

Order = Literal["newest", "random"]
#: Characters of a question that are kept, as in the store.
QUERY_CHARS = 51_200
#: Captured questions without a limit, and most questions of a file.
CAPTURED, LIMIT_MOST = 50, 10_000
#: Views with documents and their texts, and the column of these.
_VIEWS = {"answers": "contexts", "candidates": "passages"}

#: The newest event of each question that once retrieved two documents: it may have found fewer since.
_DISTINCT = """
SELECT argMax(view, event_time), toString(argMax(event_id, event_time)), max(event_time) AS latest
FROM (
    SELECT 'answers' AS view, event_id, event_time, {answers} AS question, length(arrayDistinct(contexts.id)) AS documents
    FROM answers
    WHERE project = {{project:String}} AND {recent} AND notEmpty(query) AND notEmpty(contexts.id)
    UNION ALL
    SELECT 'candidates' AS view, event_id, event_time, {answers} AS question, length(arrayDistinct(passages.id)) AS documents
    FROM candidates
    WHERE project = {{project:String}} AND {recent} AND notEmpty(query) AND notEmpty(passages.id)
)
GROUP BY question HAVING max(documents) > 1 ORDER BY {order} LIMIT {{limit:UInt32}}
"""
_RECENT = "event_time >= fromUnixTimestamp64Milli(toUnixTimestamp64Milli(now64(3)) - {since:Int64}, 'UTC')"
_ORDERS = {"newest": "latest DESC, question", "random": "cityHash64(question, {seed:UInt64}), question"}

_TEXTS = """
SELECT query, toUnixTimestamp64Milli(created_at) AS created,
    {column}.source_id AS sources, {column}.id AS ids, {column}.text AS texts
FROM {view}
WHERE project = {{project:String}} AND event_id IN ({{events:Array(UUID)}}) AND {recent}
"""


@dataclass(frozen=True)
class Source:
    """The source of questions and documents: exactly one of captured events, a file, and one question."""

    from_capture: bool = False
    queries_file: Path | None = None
    query: str | None = None
    #: Asked for documents, unless these were captured.
    system: TargetConfig | None = None
    project: str = "default"
    since: str = "30d"
    order: Order = "newest"
    #: Most distinct questions; None: `CAPTURED` of the captured, all of a file.
    limit: int | None = None
    top_k: int = 5
    seed: int = 0

    @property
    def scope(self) -> str:
        """The source as a series of runs names it, without secrets.

        Other questions are another measurement, so it has a hash of those that were asked.
        """
        from assay_evals.target.redaction import redact_target

        if self.from_capture:
            return f"{self.limit or CAPTURED} {self.order} captured questions since {self.since}"
        target = redact_target(self.system.target) if self.system else ""
        of = f"workspace {self.system.workspace}, " if self.system and self.system.workspace else ""
        asked = "\n".join(sorted(self.asked()))
        name = self.queries_file.name if self.queries_file else "one question"
        return f"{name} ({sha256(asked.encode(errors='replace')).hexdigest()[:12]}), {of}target {target}"

    def asked(self) -> list[str]:
        """Return the questions to ask the target. Raises `OperationError`."""
        return [self.query] if self.query is not None else self.in_file()[: self.limit]

    def in_file(self) -> list[str]:
        """Return the distinct questions of the file. Raises `OperationError`."""
        return list(_distinct_lines(self))


@dataclass
class Read:
    """Questions with documents, and questions by the reason why they have fewer than two."""

    questions: "list[Question]" = field(default_factory=list)
    #: When the event with the documents was captured, by question.
    captured_at: dict[str, datetime] = field(default_factory=dict)
    without_pairs: Counter[str] = field(default_factory=Counter)
    #: Keys of all pairs of the documents of each question with a document, by the question's key.
    retrieved: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, query: str, documents: "Sequence[Document]") -> bool:
        """Add a question with its documents; False if they make no pair."""
        from assay_evals.contradictions.pairs import Question, keys_of, query_key

        question = Question(query, tuple(documents))
        if documents:  # without any, it may be that the texts are missing
            self.retrieved[query_key(query)] = keys_of(question)
        if len(documents) < 2:
            self.without_pairs["without two documents with text"] += 1
            return False
        self.questions.append(question)
        return True


def expect_one(source: Source) -> None:
    """Raise `OperationError` unless there is exactly one source, with a target where it needs one."""
    given = [source.from_capture, source.queries_file is not None, source.query is not None]
    if sum(given) != 1:
        raise OperationError("invalid", "name one source: --from-capture, --queries-file FILE or --query TEXT")
    if source.from_capture and source.system is not None:
        raise OperationError(
            "invalid", "--target: captured questions have their documents; pass --queries-file with it"
        )
    if not source.from_capture and source.system is None:
        raise OperationError("invalid", "--queries-file and --query need --target, which returns the documents")
    if source.query is not None and not source.query.strip():
        raise OperationError("invalid", "--query: empty")
    if source.order not in _ORDERS:
        raise OperationError("invalid", f"--order: {source.order!r} is not newest or random")
    duration_ms(source.since, "--since")


def read_questions(source: Source, data: Path) -> Read:
    """Read or ask for the documents of each question. Raises `OperationError` if no question has two."""
    found = _captured(source, data) if source.from_capture else _asked(source)
    if not found.questions:
        reasons = ", ".join(f"{count:,} {name}" for name, count in found.without_pairs.items())
        raise OperationError(
            "not_found",
            f"no question with two documents and their texts was captured in project {source.project} since {source.since}: producers "
            "send them as contexts of an answer or passages of a retrieval"
            if source.from_capture
            else f"no question has two documents with texts ({reasons}): a target returns them as `contexts`, with id and text",
        )
    return found


def _captured(source: Source, data: Path) -> Read:
    from assay_evals.contradictions.pairs import distinct_documents
    from assay_evals.dataset.model import document_id

    found = Read()
    with open_store(settings_for("sre", data).store) as client:
        for row in _rows(client, source):
            names = [document_id(name, source_id) for name, source_id in zip(row["ids"], row["sources"], strict=True)]
            documents = distinct_documents(zip(names, row["texts"], strict=True), source.top_k)
            if found.add(row["query"], documents):
                found.captured_at[row["query"]] = datetime.fromtimestamp(row["created"] / 1000, UTC)
    return found


def _rows(client: "Client", source: Source) -> Iterator[dict[str, Any]]:
    """Yield the newest event of each distinct question, with the texts of its documents."""
    wanted = {
        "project": source.project,
        "since": duration_ms(source.since, "--since"),
        "limit": source.limit or CAPTURED,
        "seed": source.seed,
    }
    query = _DISTINCT.format(answers=question_hash("query"), recent=_RECENT, order=_ORDERS[source.order])
    chosen = client.query(query, parameters=wanted).result_rows
    for view, column in _VIEWS.items():
        events = [str(event) for of, event, _ in chosen if of == view]
        for start in range(0, len(events), 100):
            texts = _TEXTS.format(column=column, view=view, recent=_RECENT)
            some = {**wanted, "events": events[start : start + 100]}
            yield from map(dict, client.query(texts, parameters=some).named_results())


def _asked(source: Source) -> Read:
    from assay_evals.contradictions.pairs import distinct_documents
    from assay_evals.target import targets
    from assay_operations.scrub import policies
    from assay_scrubber.engine import Scrubber

    assert source.system is not None
    found, scrubber = Read(), Scrubber(policies(None).of(source.project))
    queries = source.asked()
    if source.queries_file is not None and (left := (total := len(source.in_file())) - len(queries)):
        found.without_pairs[f"not asked (--limit: {len(queries):,} of {total:,} questions in the file)"] = left

    def take(reply: "QueryResult[str]") -> None:
        if reply.answer is None:
            found.without_pairs[f"not answered ({reply.error})"] += 1
            return
        # What a target returns was not scrubbed, and is stored.
        passages = [(name, scrubber.scrub(_plain(text)).text) for name, text in reply.answer.contexts]
        documents = distinct_documents(passages, source.top_k)
        found.add(scrubber.scrub(_plain(reply.item)).text[:QUERY_CHARS], documents)

    source.system.ask(queries, lambda query: targets.Question(query, source.top_k), take)
    found.questions = list({question.query: question for question in found.questions}.values())
    return found


def _plain(text: str) -> str:
    return text.encode(errors="replace").decode()  # without lone surrogates, which no file can contain


def _distinct_lines(source: Source) -> Iterable[str]:
    """Return the distinct questions of a file: plain lines, or JSON lines with `query`."""
    assert source.queries_file is not None
    queries: dict[str, str] = {}
    for number, line in enumerate(lines_of(source.queries_file, "--queries-file"), start=1):
        if not line.strip():
            continue
        query = _query_in(line, f"--queries-file: {source.queries_file}: line {number}")
        queries.setdefault(" ".join(query.split()).casefold(), query)
    if source.limit is None and len(queries) > LIMIT_MOST:
        raise OperationError(
            "invalid",
            f"--queries-file: {source.queries_file} contains {len(queries):,} questions: pass --limit, at most {LIMIT_MOST:,}",
        )
    if not queries:
        raise OperationError("invalid", f"--queries-file: {source.queries_file} contains no question")
    return queries.values()


def _query_in(line: str, where: str) -> str:
    from assay_evals.strict_json import JsonError, loads

    query: object = line.strip()
    if line.lstrip().startswith("{"):
        try:
            row = loads(line)
        except JsonError as error:
            raise OperationError("invalid", f"{where} is {error}") from None
        query = row.get("query") if isinstance(row, Mapping) else None
    if not isinstance(query, str) or not query.strip():
        raise OperationError("invalid", f"{where} has no query")
    if len(query) > QUERY_CHARS:
        raise OperationError("invalid", f"{where} has more than {QUERY_CHARS:,} characters")
    return query.strip()
