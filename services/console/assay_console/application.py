"""The web application: pages, the read API, static files, login."""

import asyncio
import logging
import shlex
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from assay_console.event_stream import stream
from assay_console.frame import shown
from assay_console.guard import BODY_MAX, Guard
from assay_console.live import Live, Position, parse_position
from assay_console.login import Login, hosts_of
from assay_console.openapi import openapi
from assay_console.page import Action, Ask, Document, File, Form, Page
from assay_console.pages import ACTIONS, PAGES
from assay_console.people import Person, Role
from assay_console.reads import Reads
from assay_console.rendering import render
from assay_console.scope import Scope, link, scope_of
from assay_console.views import live as live_page
from assay_operations.errors import OperationError, explain
from assay_runtime.connection import Client as Redis
from assay_schema.settings import Settings

log = logging.getLogger(__name__)

STATUS = {"unavailable": 503, "refused": 403, "not_found": 404, "invalid": 422, "conflict": 409}
_WORDS = {
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    422: "Invalid",
    500: "Error",
    503: "Not available",
}
#: Live ranges end at a multiple of this, so that viewers who ask in the same seconds share an answer. In ms.
_GRAIN_MS = 5_000
_STATIC = Path(__file__).parent / "static"
Answer = Callable[[Request], Awaitable[Response]]


class _NoPersonError(Exception):
    """The request is not signed in."""


class Console:
    """Answers requests with pages and documents."""

    def __init__(self, settings: Settings, reads: Reads, redis: Redis, login: Login) -> None:
        self._settings = settings
        self._reads = reads
        self._redis = redis
        self._login = login
        self.live = Live(settings.redis)
        self._sql = Reads(settings.store, 1)

    async def close(self) -> None:
        """End the viewers of the live tail, and start no more SQL."""
        await self.live.close()
        self._sql.close()

    def application(self) -> Starlette:
        """Build the ASGI application."""
        routes: list[Any] = [
            Mount("/static", StaticFiles(directory=_STATIC)),
            Route("/login", self._caught(self._enter)),
            Route("/logout", self._caught(self._leave), methods=["POST"]),
            Route("/api/v1/openapi.json", self._caught(self._openapi)),
            Route(f"/api/v1{live_page.PAGE.stream}", self._caught(self._live)),
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
            return await self._rendered(page, ask, page.read(ask))

        return answer

    async def _rendered(
        self, page: Page, ask: Ask, work: Awaitable[Document], refused: OperationError | None = None
    ) -> Response:
        """Return a page as HTML. `refused`: why the form that it shows again was not accepted."""
        started = time.perf_counter()
        document, frame = await asyncio.gather(work, shown(ask))
        shell = self._shell(page, ask)
        text = render(page.template_name, doc=document, page=page, ask=ask, frame=frame, refused=refused, **shell)
        status = STATUS[refused.kind] if refused else document.http_status
        return HTMLResponse(text, status, headers=_timing(ask, started))

    def _document(self, page: Page) -> Answer:
        async def answer(request: Request) -> Response:
            ask = await self._ask(page, request)
            started = time.perf_counter()
            document = await page.read(ask)
            return _json(document, document.http_status, headers=_timing(ask, started))

        return answer

    def _file(self, page: Page, export: Callable[[Ask], Awaitable[File]]) -> Answer:
        async def answer(request: Request) -> Response:
            file = await export(await self._ask(page, request))
            headers = {"content-disposition": f'attachment; filename="{file.name}"'}
            return StreamingResponse(file.parts, media_type=file.media_type, headers=headers)

        return answer

    def _act(self, action: Action) -> Answer:
        async def answer(request: Request) -> Response:
            person = await self._person(request, action.role)
            body = await _body(request)
            ask = Ask(
                request.query_params, request.path_params, scope_of({}, _now_ms()), person,
                self._settings, self._reads, self._redis, self.live, self._sql,
            )  # fmt: skip
            try:
                target = await action.apply(ask, _fields(action, body))
            except OperationError as refused:
                if action.form is None or _is_api(request) or refused.kind not in ("invalid", "conflict"):
                    raise
                return await self._form_again(action.form, ask, body, refused)
            return _json({"location": target}) if _is_api(request) else RedirectResponse(target, 303)

        return answer

    async def _form_again(self, form: Form, ask: Ask, body: Mapping[str, str], refused: OperationError) -> Response:
        """Return the page of a form with what was sent, and why it is refused."""
        try:
            parameters = _checked(form.page, list(form.parameters(ask, body).items()))
            scope = scope_of(parameters, _now_ms(), form.page.span or "24h")
            again = replace(ask, parameters=parameters, scope=scope)
            return await self._rendered(form.page, again, form.read(again, body), refused)
        except OperationError:
            raise refused from None

    async def _enter(self, request: Request) -> Response:
        return self._login.enter(request)

    async def _leave(self, _: Request) -> Response:
        return self._login.leave()

    async def _openapi(self, request: Request) -> Response:
        await self._person(request, Role.VIEWER)
        return _json(openapi(PAGES, ACTIONS))

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
                "refused", f"this needs the role {role.label}; yours is {person.role.label}", "see docs/console.md"
            )
        return person

    async def _ask(self, page: Page, request: Request) -> Ask:
        person = await self._person(request, page.role)
        parameters = _checked(page, request.query_params.multi_items())
        scope = scope_of(parameters, _now_ms(), page.span or "24h")
        if person.project is not None:
            if not page.by_project:
                raise OperationError("refused", "a key reads the documents of one project, and this one is about all")
            if scope.project not in ("", person.project):
                raise OperationError("refused", f"this key reads project {person.project} only")
            scope = Scope(person.project, scope.from_ms, scope.to_ms, scope.span)
        return Ask(
            parameters, request.path_params, scope, person, self._settings, self._reads, self._redis, self.live, self._sql,
            same_origin=request.headers.get("sec-fetch-site") == "same-origin",
        )  # fmt: skip

    def _shell(self, page: Page, ask: Ask) -> dict[str, Any]:
        """Return what the frame around every page shows."""
        here = link(_filled(page.path, ask.path), dict(ask.parameters))
        return {
            "pages": PAGES,
            "person": ask.person,
            "scope": ask.scope,
            "here": here,
            "json": link(_filled(page.api_path, ask.path), dict(ask.parameters)),
            "keep": ask.scope.parameters(),
            "command": _command(page, ask),
            "sql": page.sql,
        }

    def _caught(self, answer: Answer) -> Answer:
        """Turn errors into answers: their message, and what helps."""

        async def caught(request: Request) -> Response:
            try:
                return await answer(request)
            except _NoPersonError:
                return _problem(
                    request,
                    401,
                    "you are not signed in",
                    f"open the link that this command prints: assay console url{_data_option(self._settings)}",
                )
            except OperationError as error:
                return _problem(request, STATUS[error.kind], error.message, error.fix)
            except Exception as error:  # noqa: BLE001  # a page that fails must not show what it was working on
                known = explain(error)
                if known is None:
                    log.error("a page failed", extra={"error_class": type(error).__name__, "at": _place(error)})
                    return _problem(request, 500, f"the console failed ({type(error).__name__})", "see its log")
                return _problem(request, 503, known, "")

        return caught


def _last_position(request: Request, settings: Settings) -> Position | None:
    """Return where a viewer goes on: the id of the last event it got, else the `after` of the page that it opened."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    position = parse_position(given, settings.redis.shards)
    if given and position is None:
        raise OperationError("invalid", "after: not a position of this stream", "leave it out to begin now")
    return position


def _place(error: BaseException) -> str:
    """Return the file and line that raised an error: what a log may say of it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _now_ms() -> int:
    return -(-time.time_ns() // (1_000_000 * _GRAIN_MS)) * _GRAIN_MS


def _checked(page: Page, given: list[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters of a URL. Several of a name are joined with commas where the page allows that."""
    known = {each.name: each for each in page.parameters}
    known_names = {*known, "project", "t", "from", "to"}  # a page without a range keeps it for the next one
    found: dict[str, str] = {}
    for name, value in given:
        prefix = next((each for each in page.parameters if each.prefix and name.startswith(each.name)), None)
        if name not in known_names and prefix is None:
            if name.startswith(("utm_", "_")):
                continue
            raise OperationError(
                "invalid", f"this page has no parameter {name[:40]!r}; it has: {', '.join(sorted(known_names))}"
            )
        parameter = known.get(name, prefix)
        if len(value) > (parameter.longest if parameter else 400):
            raise OperationError("invalid", f"{name}: longer than {parameter.longest if parameter else 400} characters")
        if name in found and parameter is not None and parameter.many:
            value = f"{found[name]},{value}" if found[name] and value else found[name] or value  # noqa: PLW2901
        if parameter is not None and parameter.choices and value:
            for each in value.split(",") if parameter.many else [value]:
                if each not in parameter.choices:
                    raise OperationError(
                        "invalid", f"{name}: {each[:40]!r} is not one of {', '.join(parameter.choices)}"
                    )
        found[name] = value
    return found


def _fields(action: Action, body: Mapping[str, str]) -> dict[str, str]:
    known = {each.name: each for each in action.fields}
    for name, value in body.items():
        if name not in known:
            raise OperationError("invalid", f"unknown field {name[:40]!r}; known: {', '.join(known) or 'none'}")
        if len(value) > known[name].longest:
            raise OperationError("invalid", f"{name}: longer than {known[name].longest} characters")
        if known[name].choices and value and value not in known[name].choices:
            raise OperationError("invalid", f"{name}: {value[:40]!r} is not one of {', '.join(known[name].choices)}")
    return dict(body)


async def _body(request: Request) -> dict[str, str]:
    """Return the fields of a form or of a JSON object. Several of a name are joined with commas."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > BODY_MAX:
            raise OperationError("invalid", f"the form is larger than {BODY_MAX >> 20} MiB")
    if request.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
        try:
            document = orjson.loads(raw or b"{}")
        except orjson.JSONDecodeError:
            raise OperationError("invalid", "the body is not JSON") from None
        if not isinstance(document, dict) or not all(isinstance(each, str) for each in document.values()):
            raise OperationError("invalid", "the body must be a JSON object of texts")
        return document
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=1000)
    except (UnicodeDecodeError, ValueError):
        raise OperationError("invalid", "the body is not a form") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/api/")


def _problem(request: Request, status: int, message: str, fix: str) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if _is_api(request):
        return _json({"error": {"status": status, "message": message, "fix": fix}}, status, headers)
    text = render("problem.html", status=status, title=_WORDS[status], message=message, fix=fix)
    return HTMLResponse(text, status, headers)


def _json(document: Document | dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    value = document.model_dump(mode="json") if isinstance(document, Document) else document
    body = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    return Response(body, status, dict(headers or {}), media_type="application/json")


def _timing(ask: Ask, started: float) -> dict[str, str]:
    took = (time.perf_counter() - started) * 1000
    return {
        "server-timing": f"page;dur={took:.1f}, store;dur={ask.cost.took_ms:.1f}",
        "x-rows-read": str(ask.cost.rows_read),
    }


def _filled(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe="")).replace(f"{{{name}:path}}", quote(value))
    return path


def _data_option(settings: Settings) -> str:
    """Return the option that names the data directory, if `assay up` made it elsewhere than in ./data."""
    file = settings.console.operator_config
    if file is None or file.parent.name != "secrets" or file.parent.parent.resolve() == Path("data").resolve():
        return ""
    data = file.parent.parent
    shown = data.relative_to(Path.cwd()) if data.is_relative_to(Path.cwd()) else data
    return f" --data {shlex.quote(str(shown))}"


def _command(page: Page, ask: Ask) -> str:
    """Return the command that prints what the page shows; empty if there is none."""
    if not page.command:
        return ""
    project = f" --project {shlex.quote(ask.scope.project)}" if ask.scope.project else ""
    given = {name: shlex.quote(value) for name, value in {**ask.parameters, **ask.path}.items()}
    values = {**given, "and_project": project, "span": ask.scope.span or ask.scope.from_iso}
    return page.command.format_map(_Missing(values)) + _data_option(ask.settings)


class _Missing(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return key.upper()
