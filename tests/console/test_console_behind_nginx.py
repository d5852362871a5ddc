"""The console behind a real nginx, with the file in `deploy/nginx`: people, roles, and the live tail."""

import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.console.test_console_live import event, send
from tests.programs import needed
from tests.support.console import KEY, Console, running_console
from tests.support.ports import free_port
from tests.support.store import StoreServer
from tests.support.wait import until

SAMPLE = Path("deploy/nginx/console.conf")
HOST = "console.example.com"
PEOPLE = ("ada", "bo", "cy")


class Proxy:
    """A console behind an nginx, and the client of a browser."""

    def __init__(self, console: Console, client: httpx.Client) -> None:
        self.console, self.client = console, client

    def get(self, path: str, who: str = "", **headers: str) -> httpx.Response:
        """Read a page, as a browser does that has a login; `_` in the names of headers stands for `-`."""
        told = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.client.get(path, headers=told, auth=(who, KEY) if who else None)


@pytest.fixture(scope="module")
def proxy(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    directory = tmp_path_factory.mktemp("nginx")
    settings = {
        "ASSAY_CONSOLE_AUTH": "proxy",
        "ASSAY_CONSOLE_PUBLIC_URL": f"https://{HOST}",
        "ASSAY_CONSOLE_HOSTS": HOST,
        "ASSAY_CONSOLE_PROXY_SECRET": KEY,
        "ASSAY_CONSOLE_LABELLER_GROUPS": "reviewers",
        "ASSAY_CONSOLE_OPERATOR_GROUPS": "sre",
    }
    program, openssl = needed("nginx"), needed("openssl")
    with (
        running_console(directory, migrated, **settings) as console,
        nginx(program, openssl, directory, console) as found,
    ):
        yield found


@contextmanager
def nginx(program: str, openssl: str, directory: Path, console: Console) -> Iterator[Proxy]:
    """Run nginx with the sample, whose addresses and files are those of the test."""
    port = free_port()
    certificate = directory / "console.crt"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}",
         "-addext", f"subjectAltName=DNS:{HOST},DNS:localhost", "-keyout", directory / "console.key", "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    (directory / "console-people").write_text("".join(f"{name}:{{PLAIN}}{KEY}\n" for name in PEOPLE))
    (directory / "console-secret.conf").write_text(f'proxy_set_header X-Assay-Proxy-Secret "{KEY}";\n')
    sample = SAMPLE.read_text()
    for ours, theirs in {
        "/etc/nginx": str(directory),
        "listen 443": f"listen 127.0.0.1:{port}",
        ":9112": f":{console.port}",
    }.items():
        assert ours in sample
        sample = sample.replace(ours, theirs)
    main = directory / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""  # the directory of a test is its owner's only
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {directory}/{kind};\n" for kind in kinds)
    main.write_text(
        f"{user}daemon off;\npid {directory}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{folders}{sample}}}\n"
    )
    with (directory / "nginx.log").open("wb") as log:
        running = subprocess.Popen([program, "-p", directory, "-c", main], stderr=log)
        verify = ssl.create_default_context(cafile=str(certificate))
        try:
            with httpx.Client(
                base_url=f"https://localhost:{port}", headers={"Host": HOST}, verify=verify, timeout=60
            ) as client:
                until(lambda: answers(client), "nginx does not answer")
                yield Proxy(console, client)
        finally:
            running.terminate()
            running.wait(30)


def answers(client: httpx.Client) -> bool:
    """Return True if nginx accepts connections."""
    try:
        return client.get("/").status_code == 401
    except httpx.ConnectError:
        return False


@pytest.mark.parametrize(("who", "role"), [("ada", "operator"), ("bo", "labeller"), ("cy", "viewer")])
def test_nginx_names_the_person_and_its_groups_give_the_role(proxy: Proxy, who: str, role: str) -> None:
    page = proxy.get("/alerts", who, X_Forwarded_User="root", X_Forwarded_Groups="sre")
    assert page.status_code == 200
    assert f"{who}, {role}" in page.text


def test_without_a_login_nothing_reaches_the_console(proxy: Proxy) -> None:
    assert proxy.get("/alerts").status_code == 401
    forged = {"X_Forwarded_User": "ada", "X_Forwarded_Groups": "sre", "X_Assay_Proxy_Secret": KEY}
    assert proxy.get("/alerts", **forged).status_code == 401
    assert proxy.get("/alerts", "mallory").status_code == 401


def test_a_request_that_goes_around_nginx_has_no_person(proxy: Proxy) -> None:
    named = {"X_Forwarded_User": "ada", "X_Forwarded_Groups": "sre", "Host": HOST}
    assert proxy.console.get("/alerts", role=None, **named).status == 401


@pytest.mark.parametrize(
    ("who", "site", "status"), [("bo", "same-origin", 422), ("cy", "same-origin", 403), ("bo", "cross-site", 403)]
)
def test_a_form_needs_the_role_and_a_page_of_the_console(proxy: Proxy, who: str, site: str, status: int) -> None:
    headers = {"Sec-Fetch-Site": site, "Origin": f"https://{HOST}"}
    form = {"event_id": "x", "label": "good"}
    answer = proxy.client.post("/labels", headers=headers, data=form, auth=(who, KEY))
    assert answer.status_code == status, answer.text


def test_nginx_passes_each_live_event_at_once(proxy: Proxy) -> None:
    with proxy.client.stream("GET", "/api/v1/live", auth=("cy", KEY)) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        for number in range(3):
            send(proxy.console.redis, event(number))
            while f"question {number}" not in next(lines):
                pass
