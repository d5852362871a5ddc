"""`assay up` as a person runs it: the whole system, real processes, real signals."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay_demo.agent.scenes import read_scenes, scripted
from assay_demo.corpus import load_corpus
from assay_demo.instrumented import MODULES, answerable
from assay_demo.pii import plant, planted_values
from assay_demo.search import Search
from tests.programs import found, lacking
from tests.support.ports import free_ports
from tests.support.redis import INSTALLED
from tests.support.stack import PORTS, begin_with, command_of
from tests.support.wait import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("up")]

ASSAY = (sys.executable, "-m", "assay_cli")
#: Longest wait for anything here, in seconds: the machine may be busy.
PATIENCE_S = 300
#: The page with a sample of the summary.
SAMPLE = Path(__file__).resolve().parents[2] / "README.md"
#: What is started where quality is not watched, and where it is, in the order of starting.
CORE = ("redis", "store", "writer", "scrubber", "assembler", "gateway")
ALL = (
    "redis",
    "store",
    "auditor",
    "notifier",
    "writer",
    "drift",
    "judge",
    "scrubber",
    "assembler",
    "gateway",
    "console",
)


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def environment() -> dict[str, str]:
    """A person's: without settings, and with Python's output buffered, as it is unless a container says otherwise."""
    dropped = ("ASSAY_", "PYTHONUNBUFFERED")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


class Up:
    """One running `assay up`, without what watches quality unless it is asked for: each process takes a second of CPU to start."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        base: int | None = None,
        prefix: tuple[str, ...] = (),
        quality: bool = False,
        tables: Path | None = None,
    ) -> None:
        """Start. `tables`: the data of a store to begin with, for a test that is not about the first start."""
        arguments = arguments if quality else (*arguments, "--no-quality")
        self.data = directory / "data"
        if tables:
            self.data.mkdir(mode=0o700)
            begin_with(self.data, tables)
        self.base = base or free_ports(PORTS)
        self._output = directory / f"output-{time.monotonic_ns()}"
        command = (*prefix, *ASSAY, "up", "--data", str(self.data), "--port-base", str(self.base), *arguments)
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(),
                cwd=directory,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def says(self, text: str) -> None:
        """Wait until the output holds a text."""
        until(lambda: text in self.output or self.process.poll() is not None, f"never said {text!r}:\n{self.output}")
        assert text in self.output

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, name: str) -> psutil.Process:
        marks = {"redis": INSTALLED.path} | {name: f"assay_{name}" for name in ALL[1:]}
        (found,) = [process for process in self.descendants() if marks[name] in command_of(process)]
        return found

    def wait(self) -> int:
        return self.process.wait(timeout=PATIENCE_S)

    def leaves_nothing(self, processes: list[psutil.Process]) -> None:
        """Wait until these processes are gone and the ports closed."""
        until(lambda: not any(map(alive, processes)), f"still alive: {[p for p in processes if alive(p)]}")
        until(lambda: all(port_is_free(self.base + offset) for offset in range(PORTS)), "a port is still open")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def running(directory: Path, *arguments: str, **options: object) -> Iterator[Up]:
    up = Up(directory, *arguments, **options)  # type: ignore[arg-type]
    try:
        yield up
    finally:
        up.end()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Up]]:
    """What `whole` started, in order, for it to give out again."""
    started: list[Up] = []
    yield started
    for up in started:
        up.end()


@pytest.fixture
def whole(kept: list[Up], tmp_path_factory: pytest.TempPathFactory) -> Up:
    """Everything, up. Tests share it until one stops it."""
    if not kept or kept[-1].process.poll() is not None:
        kept.append(Up(tmp_path_factory.mktemp("whole"), quality=True))
        kept[-1].says("Where to look next")
    return kept[-1]


def counted(output: str) -> dict[str, list[int]]:
    """The numbers of the summary's rows by their first column."""
    rows = re.findall(r"^│ (\S[^│]*?)\s*│(.*)│$", output, flags=re.MULTILINE)
    return {name: [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", rest)] for name, rest in rows}


def planted_over_otlp_on_disk(data: Path) -> list[str]:
    """The files, except Redis's append-only file, that hold a value that was planted in a span."""
    cases = answerable(Search(load_corpus(modules=MODULES)))
    values = [value.encode() for family in planted_values(plant(cases, per_family=1)).values() for value in family]
    assert len(values) == 7
    files = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    holding = [
        str(path.relative_to(data)) for path, content in files.items() if any(value in content for value in values)
    ]
    return [path for path in holding if not path.startswith("redis/")]


@pytest.mark.one_day
def test_a_demo_run_accounts_for_every_event_notices_a_bad_retriever_and_a_second_run_keeps_the_data(
    tmp_path: Path,
) -> None:
    """The first run breaks the retriever half-way, the second has an agent."""
    for run in (1, 2):
        scenario = ("--scenario", "regression") if run == 1 else ()
        with running(tmp_path, "--demo", "--once", *scenario, quality=run == 1) as up:
            assert up.wait() == 0, up.output
        if run == 1:
            assert re.search(r"judged\s+│ (\d+) of \1 answers: \d+ scored", up.output), up.output
            assert re.search(r"mean faithfulness\s+│ 0\.\d{3} \(lexical baseline", up.output)
            assert re.search(r"alert critical\s+│ ", up.output), (
                "and people are told, and Alertmanager where there is one"
            )
            assert "[CRITICAL] score drift of faithfulness in project default" in up.output
            assert found("prometheus-alertmanager") is None or "in Alertmanager" in " ".join(up.output.split())
        rows = counted(up.output)
        for kind in ("retrieval", "answer", "feedback"):
            captured, stored = rows[kind]
            assert captured == stored > 0
        assert rows["total"][0] == rows["total"][1]
        assert rows["failed"] == [0]
        for family in ("email", "phone", "us_ssn", "payment_card", "jwt", "bearer_token", "connection_url"):
            planted, scrubbed = rows[family]
            assert 0 < planted <= scrubbed
        assert "capture 0, events 0, failures 0" in up.output
        assert re.search(r"watermark\s+[1-9]\d+ \(", up.output)
        assert re.search(r"capture to stored\s+p50 [\d,]+ ms, p99 [\d,]+ ms", up.output)
        assert all(port_is_free(up.base + offset) for offset in range(PORTS))
        if run == 1:
            assert "The agent and its tools" not in up.output
            assert "Over OpenTelemetry" not in up.output
        if run == 2:
            assert "applied 0001" not in up.output
            sample = {name: row for name, row in counted(SAMPLE.read_text()).items() if name in rows}
            assert {"answer", "total", "email", "tool calls: success", "sessions: answered"} <= sample.keys()
            assert sample == {name: rows[name] for name in sample}, "the README shows what a run prints"
            script = scripted(read_scenes())
            for what, by_status in (("tool calls", script.tool_calls), ("sessions", script.sessions)):
                shown = {name: row for name, row in rows.items() if name.startswith(f"{what}: ")}
                assert shown == {f"{what}: {status}": [count, count] for status, count in by_status.items()}
            told = " ".join(up.output.split())
            line = "Over OpenTelemetry: 140 spans sent, 105 of 105 events stored (35 answers, 35 retrievals, 35 tool calls)"
            assert line in told
            assert line in " ".join(SAMPLE.read_text().split())
            assert planted_over_otlp_on_disk(up.data) == []
            logged = script.sessions.total() - script.sessions["open"]
            assert f"{logged} new or changed, 0 already stored" in " ".join(up.output.split())
            assert stat.S_IMODE((up.data / "agent").stat().st_mode) == 0o700
            assert stat.S_IMODE((up.data / "agent/sessions.jsonl").stat().st_mode) == 0o600


@pytest.mark.bare_only
@pytest.mark.one_day
def test_a_service_that_refuses_most_questions_opens_an_alert_though_what_it_still_says_is_right(
    tables: Path,
    tmp_path: Path,
) -> None:
    with running(tmp_path, "--demo", "--once", "--scenario", "abstaining", quality=True, tables=tables) as up:
        assert up.wait() == 0, up.output
    told = " ".join(up.output.split())
    assert "[CRITICAL] score drift of abstained in project default" in told
    assert "answers without a claim of default rose from" in told
    assert "score drift of faithfulness" not in told
    assert re.search(r"alert critical\s+│ ", up.output), up.output


@pytest.mark.skipif(found("curl") is None, reason=lacking("curl"))
def test_the_commands_it_prints_work(whole: Up) -> None:
    curl = re.search(r"^ +(curl -s -K .*)$", whole.output, flags=re.MULTILINE)
    assert curl
    answer = subprocess.run(
        ["sh", "-c", curl[1]], cwd=whole.data.parent, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert answer.stdout.strip() == "0", answer.stderr
    sent = re.search(r"^ +(curl -s -K \S+ \S+/v1/events .*)$", whole.output, flags=re.MULTILINE)
    assert sent
    assert "assay_ingest_" not in whole.output, "a key is in no output"
    answer = subprocess.run(
        ["sh", "-c", sent[1]], cwd=whole.data.parent, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert json.loads(answer.stdout)["accepted"] == 1, answer
    health = re.search(r"^ +(curl -s \S+/readyz \S+/readyz)$", whole.output, flags=re.MULTILINE)
    assert health
    answer = subprocess.run(["sh", "-c", health[1]], capture_output=True, text=True, timeout=PATIENCE_S)
    assert answer.stdout.count('"status":"ok"') == 2


def test_one_data_directory_and_one_port_have_one_holder(whole: Up, tmp_path: Path) -> None:
    with running(whole.data.parent, base=free_ports(PORTS)) as second:
        assert second.wait() == 2
        assert second.output.count("\n") == 1
        assert f"(pid {whole.process.pid})" in second.output
    with running(tmp_path, base=whole.base) as second:
        assert second.wait() == 2
        assert f"port {whole.base} (redis) is in use" in second.output
        assert "PORT_BASE=" in second.output
    assert whole.process.poll() is None


def test_a_service_that_dies_comes_back(whole: Up) -> None:
    for name in ALL:
        whole.child(name).kill()
        whole.says(f"{name} died (killed by SIGKILL); restarting it")
        whole.says(f"{name} is back")


def test_it_stops_in_order_on_a_signal(whole: Up) -> None:
    processes = whole.descendants()
    assert len(processes) >= len(ALL)
    whole.process.send_signal(signal.SIGINT)
    assert whole.wait() == 0
    whole.leaves_nothing(processes)
    order = re.findall(r"assay \| (\w+) stopped", whole.output)
    assert order == [name for name in reversed(ALL) if name not in CORE[:2]] + ["store", "redis"]
    assert "Traceback" not in whole.output


@pytest.mark.bare_only
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends children with their parent")
def test_killed_it_leaves_nothing_behind_and_starts_again_with_the_same_data(tables: Path, tmp_path: Path) -> None:
    with running(tmp_path, tables=tables) as up:
        up.says("Where to look next")
        processes = up.descendants()
        up.process.kill()
        up.wait()
        up.leaves_nothing(processes)
    with running(tmp_path, base=up.base) as again:
        again.says("Where to look next")
        again.process.terminate()
        assert again.wait() == 0


@pytest.mark.bare_only
def test_it_keeps_running_if_people_sign_in_at_a_proxy_and_prints_the_address(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret of at least thirty-two bytes\n")
    proxy = ('auth = "proxy"', f'proxy_secret_file = "{tmp_path}/secret"', 'public_url = "https://assay.example.com"')
    (tmp_path / "assay.toml").write_text("\n".join(["[console]", *proxy]))
    with running(tmp_path, tables=tables) as up:
        up.says("https://assay.example.com (people sign in at the proxy")
        up.says("watermark")
        up.process.terminate()
        assert up.wait() == 0


@pytest.mark.bare_only
def test_it_stops_in_order_when_its_parent_dies(tables: Path, tmp_path: Path) -> None:
    parent = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    with running(tmp_path, prefix=(sys.executable, "-c", parent), tables=tables) as up:
        up.says("Where to look next")
        processes = up.descendants()
        up.process.kill()
        until(lambda: "redis stopped" in up.output, "it never stopped")
        up.leaves_nothing(processes)


@pytest.mark.bare_only
def test_interrupted_while_starting_it_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        up.says("redis ready")
        processes = up.descendants()
        up.process.terminate()
        assert up.wait() == 0
        up.leaves_nothing(processes)


@pytest.mark.bare_only
def test_it_keeps_running_when_nobody_reads_its_output_any_more(tables: Path, tmp_path: Path) -> None:
    data, base = tmp_path / "data", free_ports(PORTS)
    data.mkdir(mode=0o700)
    begin_with(data, tables)
    with subprocess.Popen(
        [*ASSAY, "up", "--data", str(data), "--port-base", str(base), "--no-quality"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(),
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            process.stdout.close()
            until(lambda: not port_is_free(base + 2) and not port_is_free(base + 3), "the services never started")
            processes = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            assert process.wait(timeout=PATIENCE_S) == 0
            until(lambda: not any(map(alive, processes)), "something is left")
            assert "stopped" in (data / "logs" / "writer.log").read_text()
        finally:
            process.kill()
