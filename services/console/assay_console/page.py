"""A page: one document, as HTML or JSON.

`read` makes the document from the parameters of the URL. `GET {path}` renders it with the template, `GET
/api/v1{api_path}` returns it as JSON.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Concatenate, Generic, Literal, ParamSpec, TypeVar, cast

from pydantic import BaseModel, ConfigDict
from redis.exceptions import RedisError

from assay_console.people import Person, Role
from assay_console.reads import KEPT_ANSWER_BYTES, ROLLUP_S, Answer, Reads, size_of
from assay_console.redis_reads import REDIS_S, RedisReads
from assay_console.scope import Scope
from assay_operations.errors import OperationError
from assay_operations.overview.flow import FlowHistory
from assay_runtime.connection import Client as Redis
from assay_runtime.store import Client
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_console.live import Live

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")


class Document(BaseModel):
    """Base class of what a page shows: the template and the JSON have the same."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=False)

    @property
    def http_status(self) -> int:
        """Status of the answer: 404 if the document says why something is not here."""
        return 200

    @property
    def judged_answers(self) -> tuple[str, ...]:
        """Event ids of the answers whose verdict this shows: a label given afterwards is not blind."""
        return ()


class Panel(Document, Generic[T]):
    """A part of a page that can fail by itself.

    `ready`: `value` is current. `stale`: the source is away; `value` is its last answer, `age_s` seconds old.
    `unavailable`: the source is away and has not answered before. `message` and `fix` then say why and what helps.
    """

    state: Literal["ready", "stale", "unavailable"]
    value: T | None = None
    message: str = ""
    fix: str = ""
    age_s: float | None = None

    def holding(self, value: U | None) -> "Panel[U]":
        """Return a panel in the same state with another value, made of this one's."""
        return Panel(state=self.state, value=value, message=self.message, fix=self.fix, age_s=self.age_s)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a page's URL, for validation, forms and the OpenAPI document."""

    name: str
    description: str
    #: Allowed values; empty: any text.
    choices: tuple[str, ...] = ()
    default: str = ""
    #: Longest value, in characters.
    longest: int = 400
    many: bool = False
    #: `name` is the beginning of the names of several parameters.
    prefix: bool = False
    #: A person writes it: a page that refuses a form shows it again.
    typed: bool = False


#: Fields of a form that keep the range of its page, for the way back.
TIMES = (
    Parameter("t", "Name of the page's range.", longest=8),
    Parameter("from", "Start of the page's range, without `t`.", longest=40),
    Parameter("to", "End of the page's range.", longest=40),
)


def times_in(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the range that a form kept, as parameters of a link."""
    return {each.name: fields.get(each.name, "") for each in TIMES}


@dataclass
class Cost:
    """Time and rows that a page took from the store."""

    took_ms: float = 0.0
    rows_read: int = 0


@dataclass
class Ask:
    """One request of a page: what is asked, by whom, and what answers."""

    parameters: Mapping[str, str]
    path: Mapping[str, str]
    scope: Scope
    person: Person
    settings: Settings
    reads: Reads
    redis: RedisReads
    #: The live tail, with `assay_console.live.Live.newest`.
    live: "Live"
    #: Reads of SQL that people write: apart from those of pages, so that they do not wait for each other.
    sql_reads: Reads
    #: What this process has seen of the way of an event, for rates.
    flow: FlowHistory
    #: Answers on which this person was shown a judge's verdict.
    shown_verdicts: tuple[str, ...] = ()
    #: True if a page of this console asked, and not a link from elsewhere.
    same_origin: bool = False
    #: What an action of this person did just now, for the page that it led to. No link can set it.
    notice: str = ""
    cost: Cost = field(default_factory=Cost)
    #: Why the whole document is the last one that this person was shown, and how old it is; None: it is current.
    stale: Panel[None] | None = None
    _panels: int = 0
    #: True if something was read outside a panel, without which there is no document.
    _needed: bool = False

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter of the URL, or its default."""
        return self.parameters.get(name) or default

    async def store(self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call an operation that reads the store. Raises `OperationError`."""
        self._needed = True
        return self._counted(await self.reads.ask(function, *arguments, **options))

    async def rollup(self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call an operation that reads rollups; its answer may be some seconds old. Raises `OperationError`."""
        self._needed = True
        return self._counted(await self.reads.ask_within(ROLLUP_S, function, *arguments, **options))

    async def panel(
        self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Panel[T]:
        """Call an operation that reads the store, for a part of a page that can fail by itself.

        If the store is away, the panel has the last answer and its age: to this question, or to the same one at the same place of
        the same link, whose range ended earlier.
        """
        return await self._panel(self.reads.ask_within, function, *arguments, **options)

    async def search(
        self, function: Callable[Concatenate[Client, P], T], *arguments: P.args, **options: P.kwargs
    ) -> Panel[T]:
        """Call an operation that may take seconds, for a part of a page, as `panel` does.

        It waits for other searches, and no page waits for it.
        """
        return await self._panel(self.reads.search_within, function, *arguments, **options)

    async def _panel(
        self,
        read: Callable[..., Awaitable[Answer[T]]],
        function: Callable[Concatenate[Client, P], T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Panel[T]:
        self._panels += 1
        # What one project was shown is never shown to a key of another one.
        place = (
            function.__module__,
            function.__qualname__,
            self._panels,
            *(sorted(each.items()) for each in (self.parameters, self.path)),
            self.scope.project,
            self.person.project,
        )
        try:
            answer = await read(ROLLUP_S, function, *arguments, **options)
            self.reads.keep(place, answer)
            return Panel(state="ready", value=self._counted(answer))
        except OperationError as error:
            if error.kind != "unavailable":
                raise
            last = self.reads.last(function, *arguments, **options) or self.reads.kept(place)
            if last is None:
                return Panel(state="unavailable", message=error.message, fix=error.fix)
            age = round(time.time() - last.at, 1)
            return Panel(state="stale", value=last.value, message=error.message, fix=error.fix, age_s=age)

    async def redis_panel(
        self, function: Callable[Concatenate[Redis, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> Panel[T]:
        """Call an operation that reads Redis, for a part of a page that can fail by itself."""
        return await self.redis_panel_within(REDIS_S, function, *arguments, **options)

    async def redis_panel_within(
        self,
        seconds: float,
        function: Callable[Concatenate[Redis, P], Awaitable[T]],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Panel[T]:
        """Do as `redis_panel`, with another time to answer."""
        try:
            return Panel(state="ready", value=await self.redis.ask_within(seconds, function, *arguments, **options))
        except (RedisError, OSError, TimeoutError) as error:
            return Panel(
                state="unavailable",
                message=f"Redis does not answer ({type(error).__name__})",
                fix="is it running? see redis.url, and `assay doctor`",
            )

    async def read_or_last(self, page: "Page") -> Document:
        """Read the document of a page, or return the one that this person was shown last.

        The last one comes while the store is away, and `stale` then has its age. Only pages that change nothing have
        one: a form shows what it will change as it is. Raises `OperationError`.
        """
        person = (self.person.name, self.person.role, self.person.project)
        place = (page.name, *(sorted(each.items()) for each in (self.parameters, self.path)), *person)
        try:
            document = await page.read(self)
        except OperationError as error:
            last = self.reads.kept(place) if error.kind == "unavailable" and page.role is Role.VIEWER else None
            if last is None:
                raise
            age = round(time.time() - last.at, 1)
            self.stale = Panel(state="stale", message=error.message, fix=error.fix, age_s=age)
            return cast("Document", last.value)
        if self._needed and page.role is Role.VIEWER and document.http_status == 200:
            self.reads.keep(place, Answer(document, time.time(), 0, 0, size_of(document, KEPT_ANSWER_BYTES)))
        return document

    def _counted(self, answer: Answer[T]) -> T:
        self.cost.took_ms += answer.took_ms
        self.cost.rows_read += answer.rows_read
        return answer.value


@dataclass(frozen=True)
class File:
    """A file to download: its name, its media type, and its content in parts."""

    name: str
    media_type: str
    parts: Iterable[bytes]


@dataclass(frozen=True)
class Page:
    """A page of the console and its operation of the API."""

    name: str
    #: Path with parameters in braces, as `/e/{event_id}`; `/api/v1` and this path is the JSON.
    path: str
    title: str
    #: The question that the page answers, in a few words.
    question: str
    read: Callable[[Ask], Awaitable[Document]]
    document: type[Document]
    parameters: tuple[Parameter, ...] = ()
    role: Role = Role.VIEWER
    #: Default range of time; empty: the page has no range.
    span: str = "24h"
    #: True if the whole document is limited to `project`, so that a key of one project may read it.
    by_project: bool = False
    #: Letter that opens the page after `g`; empty: it is not in the navigation.
    key: str = ""
    #: Name of the page in the navigation that this one belongs to.
    within: str = ""
    #: SQL that reads the same; empty: no single statement does.
    sql: str = ""
    #: Equivalent command, with `{project}`-like places from the URL's parameters, and `{and_kind}`-like ones for options.
    command: str = ""
    template: str = ""
    #: The API's path if it differs from the page's.
    api: str = ""
    #: Makes the file that `GET {path}/export` sends; None: there is none.
    export: Callable[[Ask], Awaitable[File]] | None = None
    #: Media types that the file may have.
    export_types: tuple[str, ...] = ("application/x-ndjson",)
    #: The API's path of a stream of Server-Sent Events with the same parameters; empty: there is none.
    stream: str = ""

    @property
    def api_path(self) -> str:
        """Path of the JSON."""
        return "/api/v1" + (self.api or (self.path if self.path != "/" else "/overview"))

    @property
    def template_name(self) -> str:
        """File of the template."""
        return self.template or f"{self.name}.html"


@dataclass(frozen=True)
class Form:
    """A page with a form, which is shown again if what was sent is refused.

    `read` returns its document with what was sent.
    """

    page: Page
    #: Parameters of the page, from the request and the fields that were sent.
    parameters: Callable[[Ask, Mapping[str, str]], Mapping[str, str]]
    read: Callable[[Ask, Mapping[str, str]], Awaitable[Document]]


@dataclass(frozen=True)
class Done:
    """The page that follows an action, and the notice that it shows once."""

    path: str
    notice: str = ""


@dataclass(frozen=True)
class Action:
    """A change that a person makes with a form: `POST path`. `apply` returns where to go next."""

    path: str
    summary: str
    role: Role
    apply: Callable[[Ask, Mapping[str, str]], Awaitable[Done]]
    fields: tuple[Parameter, ...] = ()
    #: Where the fields are corrected; None: a refusal has a separate page.
    form: Form | None = None
