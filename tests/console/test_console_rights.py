"""Every address of the application, asked by every role, from this site, from another one, and for another host."""

import http.client
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.routing import Route

from assay_access.console_links import Signer
from assay_console.application import Console as Application
from assay_console.login import Login
from assay_console.pages import ACTIONS, PAGES
from assay_console.people import Role
from assay_console.reads import Reads
from assay_runtime.connection import connect
from assay_schema.settings import Settings
from tests.support.console import Console, running_console
from tests.support.store import StoreServer

PLACE = "01a21b4e-9db4-7d2a-bb5a-03118d49108c"
ROLES: tuple[Role | None, ...] = (None, *Role)
SITES = ("same-origin", "cross-site", "forged-host")
_API = "/api/v1"
#: Addresses that are not of the table of pages and actions, and the status of each for those who are not signed in.
_OTHERS = {"/login": 403, "/logout": 303, "/{rest:path}": 404, f"{_API}/openapi.json": 401, f"{_API}/live": 401}


def routes() -> list[tuple[str, str]]:
    """Return the method and path of every route that the application really has."""
    settings = Settings()
    login = Login(settings.console, Signer(bytes(32), 0), None, connect(settings.redis, attempts=0))
    built = Application(settings, Reads(settings.store, 1), connect(settings.redis, attempts=0), login).application()
    return [
        (method, each.path)
        for each in built.routes
        if isinstance(each, Route)
        for method in sorted((each.methods or set()) - {"HEAD"})
    ]


ROUTES = routes()
_READ_ROLES = {
    path: page.role
    for page in PAGES
    for path in (page.path, page.api_path, f"{page.path}/export", f"{page.api_path}/export")
}
_ACTION_ROLES = {path: action.role for action in ACTIONS for path in (action.path, _API + action.path)}


def refusal(method: str, path: str, role: Role | None, site: str) -> set[int] | None:
    """Return the statuses of which a request must have one; None: any that is no refusal."""
    if site == "forged-host" or (method == "POST" and site == "cross-site"):
        return {403}
    if path in _OTHERS and (role is None or path in ("/logout", "/{rest:path}")):
        return {_OTHERS[path]}
    if path == "/login":  # no token, but a session: on to the page
        return {303}
    if path in _OTHERS:
        return None
    if role is None:
        return {401}
    needed = (_READ_ROLES if method == "GET" else _ACTION_ROLES)[path]
    if role < needed:
        return {403}
    # SQL runs for a page of this console only; an operator's action needs the operator's credentials, which this console lacks.
    if path.endswith("/sql/export") and site == "cross-site":
        return {403}
    return {403, 404, 409, 422} if method == "POST" and needed is Role.OPERATOR else None


@dataclass(frozen=True)
class Answer:
    """Status and headers of an answer, which may go on for ever."""

    status: int
    headers: dict[str, str]


def asked(console: Console, method: str, path: str, role: Role | None, site: str) -> Answer:
    """Send one request, and read the head of the answer only."""
    filled = re.sub(r"\{[^}]+\}", PLACE, path)
    query = "?q=SELECT+1" if path.endswith("/sql/export") else ""
    headers = console.session(role.name) if role else {}
    headers["Sec-Fetch-Site"] = "cross-site" if site == "cross-site" else "same-origin"
    if site == "forged-host":
        headers["Host"] = f"assay.evil.example:{console.port}"
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    try:
        connection.request(method, filled + query, b"" if method == "POST" else None, headers)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()})
    finally:
        connection.close()


@pytest.fixture(scope="module")
def console(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(tmp_path_factory.mktemp("console"), migrated) as running:
        yield running


def test_the_table_of_rights_knows_every_route() -> None:
    known = {("GET", path) for path in _READ_ROLES} | {("POST", path) for path in _ACTION_ROLES}
    others = {each for each in ROUTES if each not in known}
    assert {path for _, path in others} == set(_OTHERS)
    assert len(ROUTES) > 2 * len(PAGES) + 2 * len(ACTIONS)


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=str)
def test_an_address_answers_as_role_site_and_host_allow(console: Console, method: str, path: str) -> None:
    wrong = {}
    for role, site in itertools.product(ROLES, SITES):
        answer = asked(console, method, path, role, site)
        wanted = refusal(method, path, role, site)
        fits = answer.status in wanted if wanted else answer.status not in (401, 403) and answer.status < 500
        policy = answer.headers.get("content-security-policy", "")
        confined = "default-src 'none'" in policy and answer.headers.get("x-content-type-options") == "nosniff"
        if not fits or not confined or answer.headers.get("cache-control") != "no-store":
            wrong[role and role.label, site] = answer
    assert wrong == {}


def test_no_static_file_and_no_error_of_the_server_is_without_the_policy(console: Console) -> None:
    static = Path(__file__).parents[2] / "services" / "console" / "assay_console" / "static"
    paths = [*(f"/static/{each.name}" for each in static.iterdir()), "/static/", "/static/%00", f"/static/{'a' * 3000}"]
    for path in paths:
        answer = console.get(path, role=None)
        assert answer.status in (200, 404), path
        assert "default-src 'none'" in answer.headers["content-security-policy"], path
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        refused = console.request(method, "/alerts", "OPERATOR", None, Sec_Fetch_Site="same-origin")
        assert (refused.status, "default-src" in refused.headers["content-security-policy"]) == (405, True), method
