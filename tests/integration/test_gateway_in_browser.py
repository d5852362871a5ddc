"""The script for feedback in a real browser: a page that the key lists can send a verdict, another page cannot."""

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from assay_access.api_keys import KeyKind
from assay_schema.ids import new_event_id
from assay_schema.streams import answer_of_trace_key
from tests.programs import found, lacking
from tests.support.gateway import Gateway, running_gateway
from tests.support.wait import until

CHROMIUM = found("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=lacking("chromium"))
SCRIPT = (Path(__file__).parents[2] / "deploy/web/assay-feedback.js").read_text()
#: Puts the outcome into the page, which the browser prints when its script has ended.
PAGE = """<!doctype html><title>working</title><script>%s</script><script>
assayFeedback(%s, %s)(%s, "negative", {text: "wrong price"}).then((stored) => {
  document.title = "stored: " + stored;
});
</script>"""


class Site:
    """A web site with one page."""

    def __init__(self) -> None:
        site = self
        self.page = ""

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(site.page.encode())

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def visit(self, directory: Path) -> str:
        """Open the page in the browser. Return it as the browser has it after a minute of its own time."""
        command = [
            str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={directory / 'profile'}",
            "--virtual-time-budget=60000", "--dump-dom", self.origin,
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def site() -> Iterator[Site]:
    running = Site()
    yield running
    running.close()


def test_the_script_is_smaller_than_a_kilobyte_without_its_comments() -> None:
    code = "\n".join(line.strip() for line in SCRIPT.splitlines() if not line.strip().startswith("//"))
    assert len(code.encode()) < 1024


@pytest.mark.parametrize("listed", [True, False])
def test_a_page_can_send_a_verdict_only_if_the_key_lists_its_origin(
    gateway: Gateway, site: Site, tmp_path: Path, listed: bool
) -> None:
    origins = (site.origin if listed else "https://app.example.com",)
    key, target = gateway.key(KeyKind.FEEDBACK, origins=origins), new_event_id()
    words = (json.dumps(each) for each in (f"http://127.0.0.1:{gateway.port}", key, {"event_id": target}))
    site.page = PAGE % (SCRIPT, *words)
    assert f"<title>stored: {str(listed).lower()}</title>" in site.visit(tmp_path)
    verdicts = [each["payload"] for each in gateway.stored() if each["payload"]["target_event_id"] == target]
    sent = {"target_event_id": target, "verdict": "negative", "text": "wrong price"}
    assert verdicts == ([sent] if listed else [])
    until(lambda: key.split("_")[2] in gateway.log(), "the request is not in the log")


@pytest.mark.parametrize("known", [True, False])
def test_a_page_can_name_the_trace_of_an_answer(gateway: Gateway, site: Site, tmp_path: Path, known: bool) -> None:
    key, target, trace = gateway.key(KeyKind.FEEDBACK, origins=(site.origin,)), new_event_id(), uuid4().hex
    if known:
        with gateway.redis.client() as client:
            client.set(answer_of_trace_key(0, "shop", trace), target)
    words = (json.dumps(each) for each in (f"http://127.0.0.1:{gateway.port}", key, {"trace_id": trace}))
    site.page = PAGE % (SCRIPT, *words)
    assert f"<title>stored: {str(known).lower()}</title>" in site.visit(tmp_path)
    assert [each["payload"]["target_event_id"] for each in gateway.stored()].count(target) == known
    tries = [line for line in gateway.log().splitlines() if key.split("_")[2] in line]
    assert len(tries) == (1 if known else 5), "an open trace may close meanwhile"
