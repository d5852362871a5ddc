"""The process of one service, with settings of its own and its own log."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.wait import until


class ServiceProcess:
    """`python -m assay_<service>` against a real Redis in which the service has its own user."""

    def __init__(
        self, service: str, directory: Path, redis: RedisServer, log: str, module: str = "", **settings: str
    ) -> None:
        self.health_port = free_port()
        self.redis = redis
        self._log = directory / log
        self._module = module or f"assay_{service}"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")} | {
            "ASSAY_REDIS_URL": f"redis://{service}:{service}-password@127.0.0.1:{redis.port}/0",
            "ASSAY_REDIS_COMMAND_TIMEOUT_S": "5",
            f"ASSAY_{service.upper()}_PORT": str(self.health_port),
            **settings,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True) -> Self:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                env=self._environment,
                stdout=log,
                stderr=log,
                cwd=self._log.parent,
            )
        if ready:
            until(lambda: self.health("/readyz")[0] == 200, f"{self._module} is not ready")
        return self

    def terminate(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """End it in order."""
        self.terminate()
        assert self.process
        return self.process.wait(60)

    def kill(self) -> None:
        """End it at once, as the system does when memory is short."""
        if self.process:
            self.process.kill()
            self.process.wait(60)

    def log(self) -> str:
        return self._log.read_text()

    def health(self, path: str) -> tuple[int, str]:
        """Return status and text of a page of the internal port; status 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """Return the sum of a metric over all labels that its name does not give."""
        lines = [line.rsplit(" ", 1) for line in self.health("/metrics")[1].splitlines() if line.startswith(name)]
        return sum(float(value) for _, value in lines)
