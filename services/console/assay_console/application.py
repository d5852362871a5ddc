"""The web application: pages, the read API, static files, login."""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from assay_console.answers import STATUS, Sent, is_api, json_answer, problem, timing
from assay_console.attendance import ClientLeftError, while_there
from assay_console.event_stream import stream
from assay_console.frame import frame_of
from assay_console.guard import Guard, from_own_page
from assay_console.live import Live
from assay_console.login import Login, hosts_of
from assay_console.openapi import openapi
from assay_console.page import Action, Ask, Document, File, Form, Page
from assay_console.pages import ACTIONS, PAGES
from assay_console.parameters import body_of, checked_fields, checked_parameters
from assay_console.people import Person, Role
from assay_console.reads import Reads
from assay_console.redis_reads import RedisReads
from assay_console.rendering import render
from assay_console.scope import Scope, scope_of
from assay_console.shell import shell_of
from assay_console.shown_verdicts import ShownVerdicts
from assay_console.stream_position import StreamPosition, parse_stream_position
from assay_console.views import live as live_page
from assay_console.ways_out import page_before
from assay_operations.errors import OperationError, explain
from assay_operations.overview.flow import FlowHistory
from assay_runtime.connection import Client as Redis
from assay_schema.settings import Settings

log = logging.getLogger(__name__)

#: Live ranges end at a multiple of this, so that viewers who ask in the same seconds share an answer. In ms.
_GRAIN_MS = 5_000
_STATIC = Path(__file__).parent / "static"
Answer = Callable[[Request], Awaitable[Response]]


class _NoPersonError(Exception):
    """The request is not signed in."""


class _GetOnly(Route):
    """A route without HEAD: the answer to GET uses something up, or never ends."""

    def __init__(self, path: str, endpoint: Answer) -> None:
        super().__init__(path, endpoint)
        self.methods = {"GET"}


class Console:
    """Answers requests with pages and documents."""

    def __init__(self, settings: Settings, reads: Reads, redis: Redis, login: Login) -> None:
        self._settings = settings
        self._reads = reads
        self._redis = RedisReads(redis)
        self._login = login
        self.live = Live(settings.redis)
        self._sql = Reads(settings.store, 1, settings.store.timeout_s)
        self._flow = FlowHistory()
        self._shown = ShownVerdicts()

    async def close(self) -> None:
        """End the viewers of the live tail, and start no more SQL."""
        await self.live.close()
        self._redis.close()
        self._sql.close()

    def application(self) -> Starlette:
        """Build the ASGI application."""
        routes: list[Any] = [
            Mount("/static", StaticFiles(directory=_STATIC, packages=[("assay_ui", "static")])),
            _GetOnly("/login", self._caught(self._enter)),
            Route("/logout", self._caught(self._leave), methods=["POST"]),
            Route("/api/v1/openapi.json", self._caught(self._openapi)),
            _GetOnly(f"/api/v1{live_page.PAGE.stream}", self._caught(self._live)),
        ]
        for page in PAGES:
            routes.append(Route(page.api_path, self._caught(self._document(page))))
            routes.append(Route(page.path, self._caught(self._html(page))))
            if page.export is not None:
                file = self._caught(self._file(page, page.export))
                routes += [Route(f"{path}/export", file) for path in (page.path, page.api_path)]
        for action in ACTIONS:
            routes.append(Route(action.path, self._caught(self._act(action)), methods=["POST"]))
            routes.append(Route("/api/v1" + action.path, self._caught(self._act(action)), methods=["POST"]))
        routes.append(Route("/{rest:path}", self._caught(self._nothing)))
        hosts = hosts_of(self._settings.console)
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard, hosts=hosts), Middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)],
        )

    def _html(self, page: Page) -> Answer:
        async def answer(request: Request) -> Response:
            ask = await self._ask(page, request)
            if ask.person.project is not None:  # the frame of a page names all projects
                raise OperationError("refused", "a key reads documents, not pages", f"GET {page.api_path}")
            ask.notice = self._login.noted(request, ask.person)
            try:
                return await self._rendered(request, page, ask, ask.read_or_last(page))
            except OperationError as error:
                around = {"page": page, "ask": ask, "frame": await frame_of(ask), **shell_of(page, ask)}
                return problem(request, self._settings, STATUS[error.kind], error.message, error.fix, around)

        return answer

    async def _rendered(
        self,
        request: Request,
        page: Page,
        ask: Ask,
        work: Awaitable[Document],
        refused: OperationError | None = None,
    ) -> Response:
        """Return a page as HTML. `refused`: why the form that it shows again was not accepted."""
        started = time.perf_counter()
        document, frame = await while_there(request, asyncio.gather(work, frame_of(ask)))
        shell = shell_of(page, ask)
        text = render(page.template_name, doc=document, page=page, ask=ask, frame=frame, refused=refused, **shell)
        self._note_verdicts(ask.person, document)
        status = STATUS[refused.kind] if refused else document.http_status
        shown = HTMLResponse(text, status, headers=timing(ask, started))
        if ask.notice:
            self._login.forget_note(shown)
        return shown

    def _document(self, page: Page) -> Answer:
        async def answer(request: Request) -> Response:
            ask = await self._ask(page, request)
            started = time.perf_counter()
            document = await while_there(request, page.read(ask))
            self._note_verdicts(ask.person, document)
            return json_answer(document, document.http_status, headers=timing(ask, started))

        return answer

    def _note_verdicts(self, person: Person, document: Document) -> None:
        if person.role >= Role.LABELLER:
            self._shown.add(person.name, document.judged_answers)

    def _file(self, page: Page, export: Callable[[Ask], Awaitable[File]]) -> Answer:
        async def answer(request: Request) -> Response:
            file = await while_there(request, export(await self._ask(page, request)))
            headers = {"content-disposition": f'attachment; filename="{file.name}"'}
            return StreamingResponse(file.parts, media_type=file.media_type, headers=headers)

        return answer

    def _act(self, action: Action) -> Answer:
        async def answer(request: Request) -> Response:
            try:
                person = await self._person(request, action.role)
            except _NoPersonError:
                with suppress(OperationError):
                    await _form_of(request, action)
                raise
            body = await _form_of(request, action)
            ask = self._asking(request, {}, scope_of({}, _now_ms()), person)
            try:
                done = await action.apply(ask, checked_fields(action, body))
            except OperationError as refused:
                if action.form is None or is_api(request) or refused.kind not in ("invalid", "conflict"):
                    raise
                return await self._form_again(request, action.form, ask, body, refused)
            if is_api(request):
                return json_answer({"location": done.path})
            onward = RedirectResponse(done.path, 303)
            if done.notice:
                self._login.note(onward, person, done.path, done.notice)
            return onward

        return answer

    async def _form_again(
        self, request: Request, form: Form, ask: Ask, body: Mapping[str, str], refused: OperationError
    ) -> Response:
        """Return the page of a form with what was sent, and why it is refused."""
        try:
            parameters = checked_parameters(form.page, list(form.parameters(ask, body).items()))
            scope = scope_of(parameters, _now_ms(), form.page.span or "24h")
            again = replace(ask, parameters=parameters, scope=scope)
            return await self._rendered(request, form.page, again, form.read(again, body), refused)
        except OperationError:
            raise refused from None

    async def _enter(self, request: Request) -> Response:
        return self._login.enter(request)

    async def _leave(self, _: Request) -> Response:
        return self._login.leave()

    async def _openapi(self, request: Request) -> Response:
        await self._person(request, Role.VIEWER)
        return json_answer(openapi(PAGES, ACTIONS))

    async def _live(self, request: Request) -> Response:
        ask = await self._ask(live_page.PAGE, request)

        async def allowed() -> bool:
            person = await self._login.person(request)
            return person is not None and person.project == ask.person.project

        return await stream(self.live, live_page.wanted_of(ask), _last_position(request, self._settings), allowed)

    async def _nothing(self, _: Request) -> Response:
        raise OperationError("not_found", "there is no page at this address", "start at the overview: /")

    async def _person(self, request: Request, role: Role) -> Person:
        person = await self._login.person(request)
        if person is None:
            raise _NoPersonError
        if person.role < role:
            raise OperationError(
                "refused",
                f"this needs the role {role.label}; yours is {person.role.label}",
                f"the groups of `console.{role.label}_groups` have it",
            )
        return person

    async def _ask(self, page: Page, request: Request) -> Ask:
        person = await self._person(request, page.role)
        parameters = checked_parameters(page, request.query_params.multi_items())
        scope = scope_of(parameters, _now_ms(), page.span or "24h")
        if person.project is not None:
            if not page.by_project:
                raise OperationError("refused", "a key reads the documents of one project, and this one is about all")
            if scope.project not in ("", person.project):
                raise OperationError("refused", f"this key reads project {person.project} only")
            scope = Scope(person.project, scope.from_ms, scope.to_ms, scope.span)
        return self._asking(request, parameters, scope, person)

    def _asking(self, request: Request, parameters: Mapping[str, str], scope: Scope, person: Person) -> Ask:
        return Ask(
            parameters, request.path_params, scope, person,
            self._settings, self._reads, self._redis, self.live, self._sql, self._flow,
            shown_verdicts=self._shown.to(person.name) if person.role >= Role.LABELLER else (),
            same_origin=from_own_page(request.headers),
        )  # fmt: skip

    def _caught(self, answer: Answer) -> Answer:
        """Turn errors into answers: their message, and what helps."""

        async def caught(request: Request) -> Response:
            refused = partial(problem, request, self._settings)
            try:
                return await answer(request)
            except _NoPersonError:
                signed_out = refused(401, "you are not signed in", self._login.how)
                return signed_out if is_api(request) else self._login.remember(_asked_for(request), signed_out)
            except ClientLeftError:
                return Response(status_code=499)  # no client reads it
            except OperationError as error:
                return refused(STATUS[error.kind], error.message, error.fix)
            except Exception as error:  # noqa: BLE001  # a page that fails must not show what it was working on
                known = explain(error)
                if known is None:
                    log.error("a page failed", extra={"error_class": type(error).__name__, "at": _place(error)})
                    return refused(500, f"the console failed ({type(error).__name__})", "see its log")
                return refused(503, known, "")

        return caught


async def _form_of(request: Request, action: Action) -> dict[str, str]:
    """Read the form, and keep it for a page that refuses it."""
    body = await body_of(request)
    request.state.sent = Sent(body, tuple(each.name for each in action.fields if each.typed))
    return body


def _asked_for(request: Request) -> str:
    """Return the page that a request is for, or that its form was on."""
    if request.method == "POST":
        return page_before(request)
    path: str = request.scope["raw_path"].decode()
    return f"{path}?{request.url.query}" if request.url.query else path


def _last_position(request: Request, settings: Settings) -> StreamPosition | None:
    """Return where a viewer goes on: the id of the last event it got, else the `after` of the page that it opened."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    position = parse_stream_position(given, settings.redis.shards)
    if given and position is None:
        raise OperationError("invalid", "after: not a position of this stream", "leave it out to begin now")
    return position


def _place(error: BaseException) -> str:
    """Return the file and line that raised an error: what a log may say of it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _now_ms() -> int:
    return -(-time.time_ns() // (1_000_000 * _GRAIN_MS)) * _GRAIN_MS
