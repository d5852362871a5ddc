"""The commands, environments, identities and health checks of docker-compose.yml, run as processes: an event goes all the way."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay_schema.ids import new_event_id
from tests.contract.compose_files import BASE, load
from tests.support.deployed_redis import DeployedRedis
from tests.support.ports import free_port
from tests.support.producer import captured
from tests.support.store import PASSWORD, ROLES, StoreServer

SERVICES = load(BASE)["services"]
HEALTH = {"scrubber": 9101, "writer": 9102, "judge": 9103, "drift": 9104, "notifier": 9105, "gateway": 9106}


class Containers:
    """Runs services of docker-compose.yml here. Only addresses differ: of servers, of secrets and of health."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("redis", "work"):
            (directory / name).mkdir()
        self.redis = DeployedRedis(directory / "redis").start()
        self.store = StoreServer(directory / "store").start()
        for role in ROLES:
            (self.redis.secrets / f"store-{role}").write_text(PASSWORD)
        self.gateway_port = free_port()
        self._ports = {port: free_port() for port in HEALTH.values()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def here(self, text: str) -> str:
        places = {
            "redis:6379": f"localhost:{self.redis.port}",
            "http://clickhouse:8123": self.store.url,
            "/run/secrets/": f"{self.redis.secrets}/",
            "0.0.0.0": "127.0.0.1",  # noqa: S104  # what is replaced
            **{str(port): str(ours) for port, ours in self._ports.items()},
        }
        # At one go and whole numbers only: a port or a directory of ours may hold the digits of one of theirs.
        inside = "|".join(rf"(?<!\d){re.escape(place)}(?!\d)" for place in places)
        return re.sub(inside, lambda found: places[found[0]], text)

    def popen(self, name: str, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ASSAY_")}
        environment |= {key: self.here(str(value)) for key, value in SERVICES[name].get("environment", {}).items()}
        if name in HEALTH:
            environment[f"ASSAY_{name}_PORT".upper()] = str(self._ports[HEALTH[name]])
        if name == "gateway":
            environment["ASSAY_GATEWAY_LISTEN_PORT"] = str(self.gateway_port)
        assert command[0] == "python"
        words = [sys.executable, *map(self.here, command[1:])]
        return subprocess.Popen(words, env=environment, cwd=self.directory / "work", **options)

    def start(self, name: str) -> None:
        with (self.directory / f"{name}.log").open("wb") as log:
            self._running[name] = self.popen(name, SERVICES[name]["command"], stdout=log, stderr=log)

    def run(self, name: str, *arguments: str) -> str:
        """The output of a one-shot service, with arguments after its entrypoint if it has one."""
        command = [*SERVICES[name].get("entrypoint", []), *(arguments or SERVICES[name]["command"])]
        process = self.popen(name, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err.decode()
        return out.decode()

    def healthy(self, name: str) -> bool:
        """What the container's health check says."""
        kind, *command = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        check = self.popen(name, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return check.wait(60) == 0

    def until(self, done: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + 60
        while not done():
            for name, process in self._running.items():
                assert process.poll() is None, (self.directory / f"{name}.log").read_text()
            assert time.monotonic() < deadline, f"not in time: {what}"
            time.sleep(0.1)

    def stop(self, name: str) -> int:
        """Stop as Compose does, within the time that it gives. Returns the exit code."""
        process = self._running.pop(name)
        process.terminate()
        return process.wait(float(SERVICES[name]["stop_grace_period"].removesuffix("s")))

    def down(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait(60)
        self.redis.stop()
        self.store.stop()


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    running = Containers(tmp_path)
    yield running
    running.down()


@pytest.mark.slow
def test_an_event_goes_from_producer_to_export_with_the_identities_of_compose(containers: Containers) -> None:
    containers.run("migrate")
    for name in HEALTH:
        containers.start(name)
    for name in HEALTH:
        containers.until(partial(containers.healthy, name), f"{name} healthy")
    stats = captured(
        containers.redis.settings("producer"), containers.directory / "spool", "mail me at jane.doe@example.com"
    )
    assert stats.published == 1
    key = containers.run("operator", "keys", "create", "--kind", "feedback").strip()
    assert _verdict(containers.gateway_port, key) == 202
    exported: list[str] = []

    def arrived() -> bool:
        exported[:] = containers.run("exporter", "export", "--quiet").splitlines()
        return bool(exported)

    containers.until(arrived, "the event in the store, below the watermark")
    (row,) = map(json.loads, exported)
    assert row["retrieved_slugs"] == ["a/b"]
    assert "jane.doe" not in exported[0]
    containers.run("sre", "query", "SELECT count() FROM candidates")
    containers.run("owner", "doctor")
    assert containers.run("operator", "dead", "list") == "0 dead letters\n"
    for name in ("gateway", "notifier", "drift", "judge"):
        assert containers.stop(name) == 0
    assert containers.stop("scrubber") == 0
    assert containers.stop("writer") == 0
    assert not containers.healthy("writer"), "the check must be able to fail"


def _verdict(port: int, key: str) -> int:
    """Send a verdict to the gateway. Return the status."""
    body = json.dumps({"target": {"event_id": new_event_id()}, "verdict": "positive"}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/feedback", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        status: int = answer.status
    return status
