"""Start a real Redis from the files of deploy/redis, with the secrets that deploy/make_secrets.py writes."""

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from assay_schema.settings import RedisSettings
from tests.support.certificates import Authority
from tests.support.deployed_secrets import make_secrets
from tests.support.ports import free_port
from tests.support.redis import INSTALLED

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy/redis"


# The messages of Redis and Valkey builds without TLS.
_LACKS_TLS = re.compile(r"tls-port|Failed finding TLS support")


class DeployedRedis:
    """A Redis as in the container, except for the location of its files and that only this host can connect.

    With an authority it serves TLS as `localhost`; `ask` makes it require client certificates too.
    """

    def __init__(self, directory: Path, authority: Authority | None = None, *, ask: bool = False) -> None:
        self.directory, self.authority = directory, authority
        self.secrets = directory / "secrets"
        self.passwords = make_secrets(self.secrets)
        self.port = free_port()
        self._write("redis.conf", {
            "dir /data": f"dir {directory}",
            "aclfile /run/secrets/redis-users.acl": f"aclfile {self.secrets}/redis-users.acl",
            "port 6379": f"port {self.port}",
            "bind * -::*": "bind 127.0.0.1",
        })  # fmt: skip
        if authority:
            certificate, key = authority.issue("redis")
            self._write("redis-tls.conf", {
                "include /etc/valkey/redis.conf": f"include {directory}/redis.conf",
                "tls-port 6379": f"tls-port {self.port}",
                "tls-cert-file /run/secrets/tls-redis-cert": f"tls-cert-file {certificate}",
                "tls-key-file /run/secrets/tls-redis-key": f"tls-key-file {key}",
                "tls-ca-cert-file /run/secrets/tls-ca": f"tls-ca-cert-file {authority.ca}",
                "tls-auth-clients no": f"tls-auth-clients {'yes' if ask else 'no'}",
            })  # fmt: skip

    def start(self) -> "DeployedRedis":
        log = self.directory / "redis.log"
        conf = self.directory / ("redis-tls.conf" if self.authority else "redis.conf")
        with log.open("wb") as out:
            self._process = subprocess.Popen([INSTALLED.path, str(conf)], stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        while b"Ready to accept" not in log.read_bytes():
            if self._process.poll() is not None and self.authority and _LACKS_TLS.search(log.read_text()):
                pytest.skip("needs redis-server with TLS (Debian: redis-server)")
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def client(self, name: str) -> "redis.Redis":
        """Return a synchronous client as one of the identities."""
        tls: dict[str, Any] = {"ssl": True, "ssl_ca_certs": str(self.authority.ca)} if self.authority else {}
        return redis.Redis(
            "localhost", self.port, username=name, password=self.passwords.redis[name], socket_timeout=60, **tls
        )

    def settings(self, name: str, *, host: str = "localhost", scheme: str = "", **changed: Any) -> RedisSettings:
        """Return the settings of one of the identities."""
        values = {
            "url": f"{scheme or ('rediss' if self.authority else 'redis')}://{name}@{host}:{self.port}/0",
            "password_file": self.secrets / f"redis-{name}",
            "tls_ca_file": self.authority and self.authority.ca,
            "connect_timeout_s": 60,
            "command_timeout_s": 60,
        }
        return RedisSettings.model_validate(values | changed)

    def _write(self, name: str, places: dict[str, str]) -> None:
        text = (DEPLOY / name).read_text()
        for line, here in places.items():
            assert text.count(f"\n{line}\n") == 1, f"{name}: {line}"
            text = text.replace(f"\n{line}\n", f"\n{here}\n")
        (self.directory / name).write_text(text)
