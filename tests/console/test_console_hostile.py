"""500 hostile texts go through the whole system, from the gateway to the store, and every page that shows them is opened."""

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay_access.api_keys import KeyKind
from assay_access.console_links import Signer
from assay_access.settings_files import Ports
from assay_operations.actor import local_actor
from assay_operations.api_keys.create import apply, plan_create
from assay_runtime.config import load_settings, secret
from assay_schema.ids import new_event_id
from tests.support.browser import Window, window
from tests.support.hostile_texts import LONGEST, TEXTS
from tests.support.stack import System, running
from tests.support.wait import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("hostile")]

#: Texts of one answer: its question, the answer itself, and passages.
_TOGETHER = 10
Json = dict[str, Any]


@dataclass(frozen=True)
class Sent:
    """The running system, its console, and what was captured: ids of events with the texts of each."""

    system: System
    url: str
    cookie: tuple[str, str]
    answers: dict[str, tuple[str, ...]]
    others: dict[str, tuple[str, ...]]
    longest: str

    def session(self, _: str) -> dict[str, str]:
        return {"Cookie": "=".join(self.cookie)}


@pytest.fixture(scope="module")
def sent(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sent]:
    with running(tmp_path_factory.mktemp("hostile"), tables=tables) as system:
        ports = Ports.from_base(system.port_base)
        console = load_settings(system.data / "secrets" / "console.toml").console
        signer = Signer(secret(console.session_key, console.session_key_file, "key").encode(), 0)
        until(lambda: System._ready(ports.console), "the console is not ready")
        answers, others, longest = send(system.data, ports.gateway_http)
        all_ids = [*answers, *others, longest]
        with system.store("sre", "assay") as store:
            tables_of = ("answers", "candidates", "feedback", "tool_calls", "server_events")
            sql = " UNION ALL ".join(f"SELECT count() AS n FROM {name}" for name in tables_of)
            until(
                lambda: store.query(f"SELECT sum(n) FROM ({sql})").result_rows[0][0] >= len(all_ids),
                "not all is stored",
            )
        cookie = (f"assay_{ports.console_http}", signer.session("jo", "OPERATOR", time.time(), 1))
        yield Sent(system, f"http://127.0.0.1:{ports.console_http}", cookie, answers, others, longest)


def send(data: Path, port: int) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], str]:
    """Send all texts over HTTP: ten in each answer, and the first of the ten in an event of each other kind."""
    with ThreadPoolExecutor(1) as thread:  # the browser's driver runs an event loop in this one
        key = thread.submit(apply, plan_create(data, KeyKind.INGEST, "default"), local_actor()).result().key
    answers: dict[str, tuple[str, ...]] = {}
    others: dict[str, tuple[str, ...]] = {}
    events: list[Json] = []

    def event(kind: str, payload: Json) -> str:
        identity = new_event_id()
        events.append({"event_id": identity, "kind": kind, "service": "hostile <b>service</b>", "payload": payload})
        return identity

    for first in range(0, len(TEXTS), _TOGETHER):
        texts = TEXTS[first : first + _TOGETHER]
        question, reply, *passages = texts
        contexts = [
            {"id": f"{number} {text}"[:200], "source_id": text[:200], "text": text}
            for number, text in enumerate(passages)
        ]
        found = event(
            "retrieval", {"tool_name": "search", "query": question, "retrieved_slugs": [], "retrieved_chunk_ids": [],
                          "retrieved_ids": [each["id"] for each in contexts], "passages": contexts, "latency_ms": 1.0},
        )  # fmt: skip
        citations = [{"context_id": contexts[0]["id"], "claim": passages[-1]}]
        made = event(
            "answer", {"query": question, "answer": reply, "contexts": contexts, "citations": citations, "model": question[:200],
                       "latency_ms": 2.0, "retrieval_event_id": found},
        )  # fmt: skip
        answers[made] = texts
        others[found] = (question,)
        others[event("feedback", {"target_event_id": made, "verdict": "negative", "text": question})] = (question,)
        server = {"timestamp": "2026-11-27T12:00:00Z", "server_session_id": "s"}
        others[
            event(
                "server_event", server | {"kind": "server_event", "event_subtype": "server_start", "message": question}
            )
        ] = (question,)
        call = {
            "kind": "tool_call",
            "tool_name": "read",
            "args_summary": {"path": question},
            "status": "error",
            "error_kind": "x",
            "duration_ms": 1.0,
        }
        others[event("tool_call", server | call)] = ()
    longest = event("answer", {"query": "the longest", "answer": LONGEST, "model": "m", "latency_ms": 1.0})
    for at in range(0, len(events), 25):
        body = json.dumps(events[at : at + 25]).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/events",
            body,
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answered:
            document = json.loads(answered.read())
            assert answered.status in (200, 202), document
            assert {"rejected", "errors"}.isdisjoint(name for name in document if document[name]), document
    return answers, others, longest


def shown_texts(page: "Page") -> list[str]:
    """Return captured texts as a person copies them: pieces of one text are joined, without the marks of claims."""
    found: list[str] = page.evaluate(
        """[...document.querySelectorAll('.block, bdi.captured')].map(each => {
            const copy = each.cloneNode(true);
            for (const mark of copy.querySelectorAll('.ref')) mark.remove();
            return copy.textContent;
        })"""
    )
    return found


def complaints(opened: Window) -> list[str]:
    """Return what the browser complains about, without animations that a fast navigation ended."""
    return [each for each in opened.complaints if "Transition was" not in each]


def without_nul(text: str) -> str:
    """HTML has no NUL: a page shows it by its code point, and a copy lacks it."""
    return text.replace("\0", "")


def test_hostile_texts_are_stored_shown_and_copied_as_they_were_sent(browser: "Browser", sent: Sent) -> None:
    with window(browser, sent) as opened:
        wrong: dict[str, list[str]] = {}
        seen = set[str]()
        # An answer's page has ten texts; of the other kinds, whose pages have one, each fifth is opened.
        for identity, texts in {**sent.answers, **dict(list(sent.others.items())[::5])}.items():
            page = opened.open(f"/e/{identity}?full=1")
            there = shown_texts(page)
            if lacking := [text for text in map(without_nul, texts) if text not in there]:
                wrong[identity] = lacking
            seen |= set(texts)
            assert page.evaluate("window.ran") is None
        assert wrong == {}
        assert seen == set(TEXTS)
        assert (complaints(opened), opened.foreign, opened.dialogs) == ([], [], [])


def test_pages_of_lists_show_hostile_texts_as_text(browser: "Browser", sent: Sent) -> None:
    one = next(iter(sent.answers))
    questions = {without_nul(texts[0]) for texts in sent.answers.values()}
    paths = [
        *("/", "/events?t=1h", "/live", "/arrivals", "/quality", "/failures", "/health", "/sessions"),
        "/events/differs?t=1h&has=negative", "/events/differs?t=1h&kind=answer&status=cited",
        "/label?project=default", f"/label?project=default&item={one}", "/review?project=default&t=30d&negative=1", "/datasets",
    ]  # fmt: skip
    with window(browser, sent) as opened:
        listed = set[str]()
        for path in paths:
            page = opened.open(path)
            assert page.evaluate("window.ran") is None, path
            assert page.locator("nav.rail").count() == 1, f"{path}: the page is broken"
            assert page.title().endswith("· Assay"), path
        page = opened.open("/events?t=1h&kind=answer")
        listed |= set(page.locator("table.events td.text bdi").all_text_contents())
        while page.locator("a[rel=next]").count():
            page.locator("a[rel=next]").click()
            page.wait_for_load_state()
            listed |= set(page.locator("table.events td.text bdi").all_text_contents())
        assert {text for text in questions if len(text) <= 200} <= listed
        page = opened.open("/sql")
        page.locator("#q").fill("SELECT query, answer, contexts.text FROM answers ORDER BY event_time")
        page.locator("#sql button").first.click()
        page.wait_for_load_state()
        assert questions <= set(page.locator("bdi.captured").all_text_contents())
        assert page.evaluate("window.ran") is None
        assert (complaints(opened), opened.foreign, opened.dialogs) == ([], [], [])


def test_a_text_of_256_kib_is_shown_in_parts_and_whole(browser: "Browser", sent: Sent) -> None:
    with window(browser, sent) as opened:
        page = opened.open(f"/e/{sent.longest}")
        (beginning,) = page.locator(".answer .block").all_text_contents()
        assert LONGEST.startswith(beginning)
        assert f"of {len(LONGEST):,} characters" in page.locator("main").inner_text()
        page = opened.open(f"/e/{sent.longest}?full=1")
        assert page.locator(".answer .block").all_text_contents() == [LONGEST]
        assert page.evaluate("window.ran") is None
        assert (complaints(opened), opened.foreign, opened.dialogs) == ([], [], [])
