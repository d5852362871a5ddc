"""The demo's instrumented process, and the lines of the docs that send spans, through gateway and assembler."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_demo.corpus import load_corpus
from assay_demo.instrumented import MODULES, SERVICE, answerable
from assay_demo.pii import plant, planted_values
from assay_demo.search import Search
from assay_runtime.entries import Entry
from assay_schema.validation import parse_event
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.process import Processor
from tests.programs import found, lacking
from tests.support.assembler import Assembler, captured, kinds
from tests.support.docs_commands import ROOT, blocks
from tests.support.gateway import Gateway, redis_with_identities
from tests.support.redis import RedisServer
from tests.support.wait import until


class Sent:
    """One run of the process by the block of docs/otel.md, and the events that came of it."""

    def __init__(self, folder: Path, redis: RedisServer, gateway: Gateway) -> None:
        [block] = [each for each in blocks("sh") if each.page == "docs/otel.md" and "assay_demo" in each.text]
        done = typed(folder, block.text, gateway)
        assert done.returncode == 0, done.stderr
        self.output = done.stdout + done.stderr
        self.report = json.loads(done.stdout.splitlines()[-1])
        until(lambda: kinds(redis) == self.report["expected"], "events are missing")
        self.events = captured(redis)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]


def typed(folder: Path, block: str, gateway: Gateway) -> subprocess.CompletedProcess[str]:
    """Run a block of the docs in a folder of a reader whose gateway has another port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "OTEL_"))}
    text = block.replace("127.0.0.1:9108", f"127.0.0.1:{gateway.port}")
    return subprocess.run(["sh", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = redis_with_identities(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def gateway(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    running = Gateway(tmp_path_factory.mktemp("gateway"), redis).start()
    assembler = Assembler(tmp_path_factory.mktemp("assembler"), redis).start()
    yield running
    running.kill()
    assembler.kill()


@pytest.fixture(scope="module")
def folder(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `assay up` ran: a file with a key, and the interpreter."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "data/secrets").mkdir(parents=True)
    headers = (f"Authorization: Bearer {gateway.key()}", "Content-Type: application/json")
    (folder / "data/secrets/gateway.curl").write_text("".join(f'header = "{each}"\n' for each in headers))
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    return folder


@pytest.fixture(scope="module")
def sent(folder: Path, redis: RedisServer, gateway: Gateway) -> Sent:
    return Sent(folder, redis, gateway)


def test_each_question_is_an_answer_with_contexts_a_retrieval_and_a_tool_call_of_one_trace(sent: Sent) -> None:
    questions = sent.report["questions"]
    assert 30 <= questions <= 40
    assert sent.report["spans"] == 4 * questions
    assert sent.report["expected"] == dict.fromkeys(("answer", "retrieval", "tool_call"), questions)
    traces = {kind: {event["traceparent"].split("-")[1] for event in sent.of(kind)} for kind in sent.report["expected"]}
    assert len(traces["answer"]) == questions
    assert traces["answer"] == traces["retrieval"] == traces["tool_call"]
    retrievals = {event["event_id"] for event in sent.of("retrieval")}
    for answer in sent.of("answer"):
        assert answer["payload"]["contexts"]
        assert answer["payload"]["answer"]
        assert answer["payload"]["retrieval_event_id"] in retrievals
    assert {(event["service"], event["origin"], event["project"]) for event in sent.events} == {
        (SERVICE, "otlp", "shop")
    }


def test_planted_values_are_in_spans_of_every_kind_and_scrubbed_from_every_event(sent: Sent) -> None:
    cases = answerable(Search(load_corpus(modules=MODULES)))
    values = [value for family in planted_values(plant(cases, per_family=1)).values() for value in family]
    assert len(values) == sum(sent.report["planted"].values()) == 7
    for kind in ("answer", "retrieval", "tool_call"):
        raw = orjson.dumps(sent.of(kind)).decode()
        assert [value for value in values if value not in raw] == [], kind
    entries = [Entry(f"1899999999999-{number}", orjson.dumps(event)) for number, event in enumerate(sent.events)]
    outcomes = Processor(Scrubber(Policy())).process(iter(entries))
    assert [outcome.failure for outcome in outcomes if outcome.failure] == []
    scrubbed = b"\n".join(outcome.event or b"" for outcome in outcomes).decode()
    assert [value for value in values if value in scrubbed] == []
    assert [value for value in values if value in sent.output] == []


@pytest.mark.skipif(found("curl") is None, reason=lacking("curl"))
def test_the_line_for_curl_in_the_readme_sends_a_retrieval(
    sent: Sent, folder: Path, redis: RedisServer, gateway: Gateway
) -> None:
    line = re.search(r"^curl .*/v1/traces .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert line
    done = typed(folder, line[0], gateway)
    assert (done.stdout, done.returncode) == ("{}", 0), done.stderr
    until(lambda: kinds(redis) == Counter(sent.report["expected"]) + Counter(retrieval=1), "no retrieval came")
    [event] = [each for each in captured(redis) if each["service"] == "shop"]
    assert parse_event(orjson.dumps(event)).payload.model_dump()["retrieved_ids"] == ["boots/alpine"]


def test_the_program_of_the_docs_makes_a_retrieval_and_an_answer_with_a_context(
    folder: Path, redis: RedisServer, gateway: Gateway
) -> None:
    [block] = [each for each in blocks("python") if each.page == "docs/otel.md"]
    [variables] = [each for each in blocks("sh") if each.page == "docs/otel.md" and "assay_demo" in each.text]
    (folder / "advice.py").write_text(block.text)
    done = typed(folder, variables.text.replace("-m assay_demo.instrumented", "advice.py"), gateway)
    assert (done.returncode, done.stderr) == (0, "")

    def mine() -> dict[str, dict[str, Any]]:
        return {each["kind"]: each["payload"] for each in captured(redis) if each["service"] == "boots-advice"}

    until(lambda: len(mine()) == 2, "the events are missing")
    found = mine()
    assert found["retrieval"]["retrieved_ids"] == ["boots/alpine"]
    assert found["answer"]["query"] == "Which boots are light?"
    assert [each["text"] for each in found["answer"]["contexts"]] == ["Alpine boots weigh 900 g."]
