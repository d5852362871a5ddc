"""Every command and SQL statement that README and docs show is run, as a reader types it, against a system with the demo's data.

A page can say why it is not.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay_schema.streams import CAPTURE, DEAD, FIELD
from tests.programs import needed
from tests.support import longmemeval
from tests.support.demo import run_demo
from tests.support.docs_commands import ROOT, Block, Command, blocks, commands, statements
from tests.support.stack import System, running
from tests.support.terminal import on_a_terminal
from tests.support.wait import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("docs-commands")]

#: A page's commands need no program that a bare machine lacks, so there they prove the most.
TYPED = pytest.mark.bare_only

SHELL = list(blocks("sh"))
SQL = list(blocks("sql"))
#: The guide of capture has its own test: services/capture/tests/test_capture_guide.py.
PYTHON = [block for block in blocks("python") if block.page != "docs/capture.md"]
#: Ids that pages show in examples. The reader has others.
LETTER, ANSWER, ALERT, SESSION = "1795304833012-0", "EVENT_ID", "ALERT_ID", "sessions show ID"


def gbrains_baseline() -> str:
    """A baseline as gbrain publishes it."""
    digest = hashlib.sha256(b"waterproof boots").hexdigest()[:16]
    metadata = {
        "schema_version": 1, "_kind": "baseline_metadata", "label": "personal", "published_at": "2026-11-20T01:02:03Z",
        "source_hash": hashlib.sha256(digest.encode()).hexdigest(), "row_count": 1, "baseline_mean_latency_ms": 12,
        "thresholds": {"jaccard": 0.85, "top1": 0.8, "latency_multiplier": 2},
    }  # fmt: skip
    row = {
        "schema_version": 1, "id": 1, "tool_name": "query", "query": "waterproof boots", "retrieved_slugs": ["boots/alpine"],
        "source_ids": ["default"], "latency_ms": 12, "query_hash": digest,
    }  # fmt: skip
    return f"{json.dumps(metadata)}\n{json.dumps(row)}\n"


#: Files that the pages take for granted: the reader's own program, datasets, labels and logs.
FILES = {
    "my_service.py": """
from assay_capture import Capture

capture = Capture.from_env(service="shop-search")
assert capture.retrieval(tool_name="query", query="boots", retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1)
capture.close()
""",
    "my_service/__init__.py": "",
    "my_service/search.py": "from assay_demo.target import search as search\n",
    "hash.key": "0123456789abcdef0123456789abcdef\n",
    "app.py": "def ask(query, limit=10):\n    return {'results': ['a'], 'answer': 'please', 'latency_ms': 1.0}\n",
    "own_scorers.py": "def short(case, answer):\n    return len(answer.answer or '') < 100\n",
    "answer.schema.json": '{"type": "string"}',
    "cases.csv": "id,query,expected_ids,graded_relevance\nboots,waterproof boots,boots/alpine;boots/trail,boots/alpine=3;boots/trail=1\n",
    "bm25.run": "boots Q0 boots/alpine 1 9.5 bm25\n",
    "all.qrels": "1 0 boots/alpine 2\n",
    "topics.tsv": "1\twaterproof boots\n",
    "scifact/queries.jsonl": '{"_id": "1", "text": "waterproof boots"}\n',
    "scifact/qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\tboots/alpine\t1\n",
    "my_memory.py": (
        "def memory(query, limit, tool_name, params):\n"
        "    return {'results': [each['session_id'] for each in params.get('sessions', [])][:limit], 'answer': 'blue'}\n"
    ),
    "longmemeval_oracle.json": json.dumps(longmemeval.rows(8)),
    "known.json": '{"schema_version": 1, "queries": [{"query": "waterproof boots", "relevant_slugs": ["boots/alpine"]}]}',
    "personal.baseline.ndjson": gbrains_baseline(),
    "app.log": "mail jo@example.com\n",
    "in.ndjson": '{"note": "EMP-12345"}\n',
    "question.sql": "SELECT count() FROM candidates",
}


@dataclass(frozen=True)
class Reader:
    """A person with a checkout and a running system, in a folder where every file that the pages name exists."""

    folder: Path
    system: System
    ids: dict[str, str]

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        return inherited | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "200",
            "ASSAY_SCRUBBER_HASH_KEY_FILE": str(self.folder / "hash.key"),
            "PYTHONPATH": f"{self.folder}:{ROOT}",
        }

    def type(self, command: Command) -> None:
        """Type one command. It must end as the page says."""
        text = command.text
        for shown, real in self.ids.items():
            text = text.replace(shown, real)
        if "asks" in command.comment:
            answer = "q\n" if "stop at any time" in command.comment else "y\n"
            on_a_terminal(["bash", "-c", text], self.folder, self.environment(), answer, command.exit_codes)
            return
        with (self.folder / "output").open("w+b") as output:
            process = subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", text],
                cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            try:
                if command.runs_until_interrupted:
                    deadline = time.monotonic() + 120
                    while not output.tell() and process.poll() is None and time.monotonic() < deadline:
                        time.sleep(0.1)
                    os.killpg(process.pid, signal.SIGINT)
                code = process.wait(200)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            output.seek(0)
            said = output.read().decode()
        expected = command.exit_codes | ({130} if command.runs_until_interrupted else set())
        assert code in expected, f"{command.text}: exit code {code}\n{said}"
        assert "Traceback (most recent call last)" not in said, said


@pytest.fixture(scope="module")
def reader(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("checkout")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    shutil.copy(folder / "my_service.py", folder / "my_program.py")
    for name in ("deploy", "docs", ".venv"):
        (folder / name).symlink_to(ROOT / name if name != ".venv" else Path(sys.executable).parents[1])
    (policy,) = [block for block in blocks("toml") if block.page == "docs/policy.md"][:1]
    (folder / "policy.toml").write_text(policy.text)
    golden = (ROOT / "deploy/demo/assay_demo/golden.jsonl").read_text()
    for path in (folder / "golden.jsonl", folder / "evals/golden.jsonl"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(golden)
    with running(folder, "--demo", "--scenario", "regression", tables=tables) as system:
        reader = Reader(folder, system, {})
        session = _play_agent(reader)
        reader.ids.update(_ids(reader) | {SESSION: f"sessions show {session}"})
        yield reader


def _play_agent(reader: Reader) -> str:
    """Play and import the agent's sessions, which a scenario leaves out. Returns the id of one."""
    log = reader.system.data / "agent/sessions.jsonl"
    settings = {"ASSAY_CAPTURE": "1", "ASSAY_CONFIG": str(reader.system.data / "secrets/producer.toml")}
    done = run_demo(reader.folder, settings, "--rounds", "0", "--no-pii", "--agent-log", str(log))
    assert done.returncode == 0, done.stderr
    reader.type(Command(f"assay sessions import --from jsonl {log}", ""))
    logged = [json.loads(line)["session_id"] for line in log.read_text().splitlines()]
    stored = "SELECT uniqExact(session_id) FROM assay.session_parts"
    until(lambda: reader.system.store("sre").command(stored) == len(logged), "the sessions are not stored")
    return str(logged[0])


def _ids(reader: Reader) -> dict[str, str]:
    """Wait for an alert and judged answers, make dead letters and labels: what the pages' ids name."""
    store = reader.system.store("sre")
    deadline = time.monotonic() + 200
    while not (
        (alerts := store.query("SELECT toString(alert_id) FROM assay.alerts LIMIT 1").result_rows)
        and len(judged := store.query("SELECT toString(event_id) FROM assay.scores WHERE status = 'scored' AND base").result_rows) >= 20
    ):  # fmt: skip
        assert time.monotonic() < deadline, reader.system.log()[-4000:]
        time.sleep(0.2)
    for name in ("alice", "bob"):
        lines = [
            json.dumps({"event_id": event, "label": "bad" if place % 5 == 0 else "good"})
            for place, (event,) in enumerate(judged)
        ]
        (reader.folder / f"{name}.ndjson").write_text("\n".join(lines) + "\n")
    letter = {
        FIELD: b"{}",
        "stream": CAPTURE.key(0),
        "entry_id": "1-0",
        "stage": "scrubber",
        "reason": "other",
        "error_class": "KeyError",
        "deliveries": "5",
    }
    ids = [reader.system.redis("scrubber").xadd(DEAD.key(0), letter) for _ in range(3)]
    for kind, name in (
        ("retrieval", "retrievals"),
        ("retrieval", "captured"),
        ("feedback", "feedback"),
        ("answer", "answers"),
    ):
        reader.type(Command(f"assay export --kind {kind} --limit 100 > {name}.ndjson", ""))
    return {
        LETTER: ids[0].decode(),
        ANSWER: judged[0][0],
        ALERT: alerts[0][0],
        "PASSWORD": _password(reader),
        ":9100/": f":{reader.system.port_base}/",
    }


def _password(reader: Reader) -> str:
    return str(json.loads((reader.system.data / "secrets/passwords.json").read_text())["redis"]["producer"])


@TYPED
@pytest.mark.parametrize("block", [block for block in SHELL if not block.reason], ids=str)
def test_the_commands_of_a_block_run(block: Block, reader: Reader) -> None:
    shutil.rmtree(reader.folder / "runs", ignore_errors=True)  # several pages name their runs and baselines alike
    (reader.folder / "main.baseline.ndjson").unlink(missing_ok=True)
    for command in commands(block):
        # `test_a_filter_of_a_page_finds_something` has jq.
        reader.type(dataclasses.replace(command, text=re.sub(r"\| jq .*", "| cat", command.text)))


def test_a_filter_of_a_page_finds_something() -> None:
    needed("jq")
    filters = [
        command.text.partition("| jq ")[2]
        for block in SHELL
        if not block.reason
        for command in commands(block)
        if "| jq " in command.text
    ]
    assert filters
    event = json.dumps({"latency_ms": 900, "payload": {"query": "waterproof boots"}})
    for text in filters:
        done = subprocess.run(
            ["bash", "-c", f"jq --exit-status {text}"],
            input=event,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, (text, done.stderr)


@TYPED
@pytest.mark.parametrize("block", [block for block in SQL if not block.reason], ids=str)
def test_the_statements_of_a_block_run(block: Block, reader: Reader) -> None:
    event = reader.system.store("sre").command("SELECT toString(event_id) FROM assay.candidates LIMIT 1")
    values = {"event": event, "trace_id": "0" * 31 + "1", "question": "boots"}
    for statement in statements(block):
        identity = "sre" if statement.startswith("SELECT") else "owner"
        reader.system.store(identity, database="assay").command(statement, parameters=values)


@TYPED
@pytest.mark.parametrize("page", sorted({block.page for block in PYTHON if not block.reason}))
def test_the_python_of_a_page_runs(page: str, reader: Reader) -> None:
    reader.type(
        Command("assay bench publish --from captured.ndjson --to main.baseline.ndjson --deduplicate --force", "")
    )
    text = "\n".join(block.text for block in PYTHON if block.page == page and not block.reason)
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=reader.folder,
        env=reader.environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_block_that_is_not_run_says_why() -> None:
    reasons = [block.reason for block in (*SHELL, *PYTHON, *SQL) if block.reason]
    assert all(len(reason.split()) > 3 for reason in reasons), reasons
