"""Who may see and do what: links, sessions, proxies, keys, roles, hosts and other sites."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from assay_access.api_keys import KeyKind
from assay_access.console_links import LINK_S, Signer
from assay_console.pages import ACTIONS, PAGES
from assay_console.people import Role
from tests.support.console import KEY, Console, running_console
from tests.support.gateway import redis_with_identities
from tests.support.store import StoreServer
from tests.support.wait import until

#: A path for each page, with places filled in.
PATHS = {page.name: re.sub(r"\{[^}]+\}", "01a21b4e-9db4-7d2a-bb5a-03118d49108c", page.path) for page in PAGES}
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104  # the console must refuse it
PROXY_SECRET = "a secret of at least thirty-two bytes"


@pytest.fixture(scope="module")
def console(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(tmp_path_factory.mktemp("console"), migrated) as running:
        yield running


# --- without a session


@pytest.mark.parametrize("name", PATHS)
def test_a_page_shows_nothing_to_those_who_are_not_signed_in(console: Console, name: str) -> None:
    page = console.get(PATHS[name], role=None)
    assert page.status == 401
    assert "assay console url" in page.text
    assert len(page.body) < 1500, "only the message"
    document = console.get(next(p for p in PAGES if p.name == name).api_path, role=None)
    assert (document.status, document.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/static/../app.py", "/static/nothing.js"])
def test_an_address_without_a_page_is_not_found(console: Console, path: str) -> None:
    assert console.get(path).status == 404


@pytest.mark.parametrize(
    "query", ["from=2026-01-01&from=2026-01-02", "q=one&q=two", "project=shop&project=other", "latency>=1&latency>=2"]
)
def test_two_values_of_a_parameter_that_has_one_are_refused(console: Console, query: str) -> None:
    """Which of them counts would be a guess."""
    for path in ("/events", "/api/v1/events"):
        answer = console.get(f"{path}?{query}")
        assert answer.status == 422
        assert "only one value is possible" in answer.text
    name, _, value = query.partition("&")[0].partition("=")
    assert console.get(f"/events?{name}={value}&{name}=&{name}={value}").status == 200


# --- links


def test_a_link_signs_in_once(console: Console) -> None:
    link = console.link()
    first = console.get(link, role=None)
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"{console.cookie}=")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    assert console.get("/alerts", role=None, Cookie=cookie.partition(";")[0]).status == 200
    again = console.get(link, role=None)
    assert again.status == 403
    assert "set-cookie" not in again.headers
    assert "assay console url" in again.text
    signed_in = console.get(f"{link}&next=/alerts", role=None, Cookie=cookie.partition(";")[0])
    assert (signed_in.status, signed_in.headers["location"]) == (303, "/alerts"), "a bookmark goes on working"
    assert "set-cookie" not in signed_in.headers, "and makes no new session"
    other = Signer(b"another console's key of 32 bytes or more", 0).session("jo", "OPERATOR", time.time(), 1)
    assert console.get(link, role=None, Cookie=f"{console.cookie}={other}").status == 403


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
def test_a_link_leads_only_to_a_page_of_the_console(console: Console, target: str) -> None:
    answer = console.get(f"{console.link()}&next={quote(target)}", role=None)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert console.get(f"{console.link()}&next=/alerts", role=None).headers["location"] == "/alerts"


@pytest.mark.parametrize(
    "token",
    ["", ".", "a.b", "eyJ1c2UiOiJsaW5rIn0.", "\u00e9.\u00e9", "x" * 5000],
)
def test_a_made_up_link_is_refused(console: Console, token: str) -> None:
    answer = console.get(f"/login?token={quote(token)}", role=None)
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_looking_at_a_link_does_not_use_it(console: Console) -> None:
    """Programs that show what a link is about ask for its head."""
    link = console.link()
    looked = console.request("HEAD", link, None, None)
    assert (looked.status, "set-cookie" in looked.headers) == (404, False)
    assert console.get(link, role=None).status == 303


def test_of_many_who_open_a_link_at_once_one_is_signed_in(console: Console) -> None:
    link = console.link()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: console.get(link, role=None), range(8)))
    assert sorted(each.status for each in answers) == [303] + [403] * 7
    assert sum("set-cookie" in each.headers for each in answers) == 1


def test_a_link_that_is_too_old_or_from_the_future_is_refused(console: Console) -> None:
    assert console.get(console.link(time.time() - LINK_S - 1), role=None).status == 403
    assert console.get(console.link(time.time() + 60), role=None).status == 403


def test_a_link_made_before_the_console_started_is_refused(console: Console) -> None:
    """Otherwise a link that was used could be used again after a restart."""
    used = console.link()
    assert console.get(used, role=None).status == 303
    console.kill()
    console.start()
    assert console.get(used, role=None).status == 403
    assert console.get(console.link(), role=None).status == 303


def test_a_cookie_that_was_changed_or_has_expired_is_no_session(console: Console) -> None:
    good = console.session()["Cookie"]
    assert console.get("/alerts", role=None, Cookie=good).status == 200
    for bad in (good[:-1], good[:-2] + "AA", good.replace("=", "=x", 1), good.partition(".")[0] + "."):
        assert console.get("/alerts", role=None, Cookie=bad).status == 401
    assert console.get("/alerts", role=None, Cookie=console.session(hours=-1)["Cookie"]).status == 401
    link = console.link().partition("token=")[2]
    assert console.get("/alerts", role=None, Cookie=f"{console.cookie}={link}").status == 401


def test_a_cookie_of_another_console_or_another_use_is_no_session(console: Console) -> None:
    """Consoles of one host share cookies, because these do not know ports."""
    signer, foreign = Signer(KEY.encode(), 0), Signer(b"another console's key of 32 bytes or more", 0)
    now = time.time()
    for value in (
        foreign.session("jo", "OPERATOR", now, 1),
        signer.notice("● Done", "jo", "/alerts", now),
        signer.session("jo", "OWNER", now, 1),
        signer.session("jo", "operator", now, 1),
    ):
        assert console.get("/alerts", role=None, Cookie=f"{console.cookie}={value}").status == 401
    good = signer.session("jo", "OPERATOR", now, 1)
    for name in ("assay", "assay_1", f"{console.cookie}0", f"x{console.cookie}"):
        assert console.get("/alerts", role=None, Cookie=f"{name}={good}").status == 401, name


def test_a_link_leads_to_the_page_that_was_asked_for_before(console: Console) -> None:
    asked = console.get("/events?q=a%26b&t=1h", role=None)
    wanted = asked.headers["set-cookie"].partition(";")[0]
    assert asked.status == 401
    assert wanted.startswith(f"{console.cookie}_wanted=")
    entered = console.get(console.link(), role=None, Cookie=wanted)
    assert (entered.status, entered.headers["location"]) == (303, "/events?q=a%26b&t=1h")
    assert console.get(f"{console.link()}&next=/alerts", role=None, Cookie=wanted).headers["location"] == "/alerts"
    for other in ("//evil.example/", "https%3A//evil.example/", "/%5Cevil.example", "%0d%0aX: y"):
        cookie = f"{console.cookie}_wanted={other}"
        assert console.get(console.link(), role=None, Cookie=cookie).headers["location"] == "/"
    for path in ("/", "/api/v1/events", "/static/../events"):
        assert "set-cookie" not in console.get(path, role=None).headers
    assert "set-cookie" not in console.post("/alerts/x/acknowledge", {}, role=None).headers


def test_what_was_written_is_shown_to_a_person_whose_session_ended(console: Console) -> None:
    form = {"project": "shop", "event_id": "x", "documents": "guides/keys", "expected_answer": "Turn <it> off."}
    host = console.url.partition("//")[2]
    sent = {"Referer": f"{console.url}/review?project=shop&t=7d", "Host": host}
    answer = console.post("/datasets/golden/cases", form, role=None, **sent)
    assert answer.status == 401
    assert "guides/keys</textarea>" in answer.text
    assert "Turn &lt;it&gt; off.</textarea>" in answer.text
    wanted = answer.headers["set-cookie"].partition(";")[0]
    assert console.get(console.link(), role=None, Cookie=wanted).headers["location"] == "/review?project=shop&t=7d"
    elsewhere = console.post("/datasets/golden/cases", form, role=None, Referer="http://evil.example/review")
    assert "set-cookie" not in elsewhere.headers
    broken = console.request("POST", "/datasets/golden/cases", None, b"\xff", Sec_Fetch_Site="same-origin")
    assert broken.status == 401, "what is wrong with a form is for those who are signed in"


def test_signing_out_removes_the_cookie(console: Console) -> None:
    assert "Sign out" in console.get("/health").text
    answer = console.post("/logout", {})
    assert answer.status == 303
    assert "Max-Age=0" in answer.headers["set-cookie"]


# --- hosts and other sites


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1]x"])
def test_a_request_for_another_host_is_refused(console: Console, host: str) -> None:
    """A name of another site can be pointed at this address."""
    assert console.get("/alerts", Host=host).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:9112"])
def test_a_request_for_its_own_host_is_answered(console: Console, host: str) -> None:
    assert console.get("/alerts", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "", "Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site", "Authorization": "Basic am86cHc="},
        {"Sec_Fetch_Site": "cross-site", "Authorization": "Negotiate am86cHc="},
    ],
)
@pytest.mark.parametrize("path", ["/logout", *sorted(action.path for action in ACTIONS)])
def test_a_page_of_another_site_can_change_nothing(console: Console, path: str, headers: dict[str, str]) -> None:
    assert console.post(re.sub(r"\{[^}]+\}", "x", path), {}, **headers).status == 403


def test_without_fetch_metadata_the_origin_decides(console: Console) -> None:
    for origin, status in ((console.url, 303), ("http://127.0.0.1:1", 403), ("null", 403)):
        answer = console.request("POST", "/logout", "VIEWER", b"", Origin=origin)
        assert answer.status == status, origin
    assert console.request("POST", "/logout", "VIEWER", b"").status == 403


# --- headers


@pytest.mark.parametrize("path", ["/alerts", "/nothing", "/api/v1/alerts", "/static/console.css"])
def test_every_answer_carries_the_headers_that_confine_a_page(console: Console, path: str) -> None:
    headers = console.get(path).headers
    policy = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    if not path.startswith("/static"):
        assert headers["cache-control"] == "no-store"


def test_no_request_is_logged_with_its_query(console: Console) -> None:
    console.get("/alerts?state=all&project=secretproject")
    console.get("/nothing?q=secretproject")
    assert "secretproject" not in console.log()


# --- roles


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31", "now", "2026-13-01"]
)
def test_a_time_that_no_event_can_have_is_refused_by_name(console: Console, time: str) -> None:
    for path in ("/events", "/api/v1/quality"):
        answer = console.get(f"{path}?from={quote(time)}")
        assert answer.status == 422, path
        assert "is not a time such as" in answer.text


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", PATHS)
def test_a_page_is_shown_to_its_role_and_those_above(console: Console, name: str, role: Role) -> None:
    page = next(each for each in PAGES if each.name == name)
    status = console.get(PATHS[name], role=role.name).status
    assert (status == 403) == (role < page.role)
    assert status in (200, 403, 404)


# --- keys of the API


def test_a_read_key_reads_documents_of_its_project_only(console: Console) -> None:
    key = console.key(project="shop")

    def read(path: str) -> int:
        return console.get(path, role=None, Authorization=f"Bearer {key}").status

    assert read("/api/v1/alerts") == 200
    assert read("/api/v1/alerts?project=shop") == 200
    assert read("/api/v1/alerts?project=other") == 403
    for page in PAGES:
        if not page.by_project:
            path = page.api_path.replace(page.path, PATHS[page.name])
            assert read(re.sub(r"\{[^}]+\}", "x", path)) == 403, page.name


def test_a_key_reads_no_page_whose_frame_names_every_project(console: Console) -> None:
    key = console.key(project="shop")
    for name, path in PATHS.items():
        assert console.get(path, role=None, Authorization=f"Bearer {key}").status == 403, name


def test_a_revoked_key_and_keys_of_other_kinds_read_nothing(console: Console) -> None:
    key = console.key()
    console.revoke(key)
    for each in (key, console.key(KeyKind.INGEST), console.key(KeyKind.FEEDBACK), key[:-1], "nonsense", ""):
        assert console.get("/api/v1/alerts", role=None, Authorization=f"Bearer {each}").status == 401
        assert each == "" or each not in console.log()


def test_a_key_can_change_nothing(console: Console) -> None:
    key = console.key()
    for action in ACTIONS:
        path = "/api/v1" + re.sub(r"\{[^}]+\}", "x", action.path)
        answer = console.request("POST", path, None, b"{}", Authorization=f"Bearer {key}")
        assert answer.status == 403, action.path


def test_without_redis_a_key_is_not_refused_but_cannot_be_checked(migrated: StoreServer, tmp_path: Path) -> None:
    with running_console(tmp_path, migrated) as console:
        key = console.key()
        console.redis.stop()
        answer = console.get("/api/v1/alerts", role=None, Authorization=f"Bearer {key}")
        assert answer.status == 503
        assert console.get("/alerts").status == 200, "a session needs no Redis"


# --- a proxy that names people


@pytest.fixture(scope="module")
def behind_proxy(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    settings = {
        "ASSAY_CONSOLE_AUTH": "proxy",
        "ASSAY_CONSOLE_PROXY_SECRET": PROXY_SECRET,
        "ASSAY_CONSOLE_LABELLER_GROUPS": "reviewers, Prüfer",
        "ASSAY_CONSOLE_OPERATOR_GROUPS": "oncall, admins",
    }
    with running_console(tmp_path_factory.mktemp("proxy"), migrated, **settings) as running:
        yield running


def named(user: str, groups: str = "", secret: str = PROXY_SECRET) -> dict[str, str]:
    return {"X_Forwarded_User": user, "X_Forwarded_Groups": groups, "X_Assay_Proxy_Secret": secret}


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ("", "viewer"),
        ("users", "viewer"),
        ("reviewers", "labeller"),
        ("users, admins", "operator"),
        ("oncallx", "viewer"),
    ],
)
def test_groups_decide_the_role(behind_proxy: Console, groups: str, role: str) -> None:
    page = behind_proxy.get("/alerts", role=None, **named("jo@example.com", groups))
    assert page.status == 200
    assert f"jo@example.com, {role}" in page.text
    assert "Sign out" not in page.text, "the proxy would sign them in again"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_and_groups_with_umlauts_are_understood(behind_proxy: Console, encoding: str) -> None:
    sent = named(*(text.encode(encoding).decode("latin-1") for text in ("Jörg Müller", "Prüfer")))
    assert "Jörg Müller, labeller" in behind_proxy.get("/alerts", role=None, **sent).text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        named("jo", secret=""),
        named("jo", secret="wrong"),
        named("jo", secret=PROXY_SECRET + "x"),
        named(""),
        named("x" * 201),
    ],
)
def test_headers_without_the_secret_or_without_a_name_do_not_sign_in(
    behind_proxy: Console, headers: dict[str, str]
) -> None:
    page = behind_proxy.get("/alerts", role=None, **headers)
    assert page.status == 401
    assert "assay console url" not in page.text
    assert "sign in at the proxy" in page.text
    assert "console.proxy_secret" in page.text


def test_behind_a_proxy_neither_links_nor_cookies_count(behind_proxy: Console) -> None:
    assert behind_proxy.get("/alerts").status == 401
    assert behind_proxy.get(behind_proxy.link(), role=None).status == 404


# --- settings


@pytest.mark.parametrize(
    ("settings", "named_setting"),
    [
        ({"ASSAY_CONSOLE_LISTEN_HOST": EVERY_ADDRESS}, "console.listen_host"),
        ({"ASSAY_CONSOLE_LISTEN_HOST": EVERY_ADDRESS, "ASSAY_CONSOLE_PUBLIC_URL": "http://assay.example.com"}, "public_url"),
        ({"ASSAY_CONSOLE_PUBLIC_URL": "https://assay.example.com/x"}, "public_url"),
        ({"ASSAY_CONSOLE_AUTH": "proxy"}, "console.proxy_secret"),
        ({"ASSAY_CONSOLE_AUTH": "proxy", "ASSAY_CONSOLE_PROXY_SECRET": "short"}, "console.proxy_secret"),
        ({"ASSAY_CONSOLE_SESSION_KEY": "short"}, "console.session_key"),
        (
            {"ASSAY_CONSOLE_AUTH": "proxy", "ASSAY_CONSOLE_PROXY_SECRET": KEY, "ASSAY_CONSOLE_TRUSTED_PROXIES": "x"},
            "trusted_proxies",
        ),
    ],
)  # fmt: skip
def test_settings_that_would_let_others_in_stop_the_start(
    migrated: StoreServer, tmp_path: Path, settings: dict[str, str], named_setting: str
) -> None:
    redis = redis_with_identities(tmp_path)
    try:
        console = Console(tmp_path, redis, migrated.url, **settings).start(ready=False)
        assert console.process
        assert console.process.wait(60) == 2
        last = json.loads(console.log().splitlines()[-1])
        assert named_setting in last["message"]
    finally:
        redis.stop()


def test_a_password_that_would_cross_a_network_in_clear_is_warned_about_at_the_start(
    migrated: StoreServer, tmp_path: Path
) -> None:
    redis = redis_with_identities(tmp_path)
    try:
        # A name of another host, which does not resolve: the console starts without the store.
        console = Console(tmp_path, redis, "http://store.invalid:8123").start()
        log = console.log()
        assert "the password of the store is sent to store.invalid unencrypted" in log
        assert "password of Redis" not in log, "it is on loopback"
        assert 0 < console.metric("assay_memory_peak_bytes") < console.metric("assay_memory_bound_bytes")
        console.kill()
    finally:
        redis.stop()


def test_it_serves_people_while_redis_and_the_store_are_away(tmp_path: Path, own_store: StoreServer) -> None:
    with running_console(tmp_path, own_store) as console:
        assert console.get("/alerts").status == 200
        own_store.kill()
        console.redis.stop()
        until(lambda: "last answer" in console.get("/alerts").text, "the page does not show that the store is away")
        console.kill()
        console.start()  # ready without either
        page = console.get("/alerts")
        assert page.status == 200
        assert "no answer at" in page.text
        own_store.start()
        until(
            lambda: "no answer at" not in console.get("/alerts").text,
            "the store is back, and the page does not show it",
        )
