"""A checkout of somebody else's code cannot send the environment's secrets anywhere, nor run anything by lying in a folder."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_capture import Capture
from assay_judge.backends import key_of
from assay_runtime.config import load_settings
from assay_runtime.transport import host_in_clear, passwords_in_clear
from assay_schema.settings import JudgeSettings, Settings, SettingsError, settings_from

PASSWORD = "environment-password"


class Listener:
    """Takes connections and keeps what is sent on them."""

    def __init__(self) -> None:
        self.heard = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.heard += connection.recv(65_536)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def assay(directory: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    program = str(Path(sys.executable).parent / "assay")
    return subprocess.run(
        [program, *arguments], cwd=directory, env=environment | variables, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip


def test_a_settings_file_that_just_lies_there_does_not_get_the_environments_password(
    tmp_path: Path, listener: Listener
) -> None:
    (tmp_path / "assay.toml").write_text(f'[store]\nurl = "http://127.0.0.1:{listener.port}"\n')
    done = assay(tmp_path, "query", "SELECT 1", ASSAY_STORE_PASSWORD=PASSWORD)
    assert done.returncode == 2
    assert listener.heard == b""
    for word in ("store.url", "ASSAY_STORE_PASSWORD", "ASSAY_STORE_URL", "ASSAY_CONFIG=assay.toml"):
        assert word in done.stderr
    assert PASSWORD not in done.stderr


def test_a_file_that_somebody_named_decides(tmp_path: Path, listener: Listener) -> None:
    (tmp_path / "assay.toml").write_text(f'[store]\nurl = "http://127.0.0.1:{listener.port}"\n')
    assay(tmp_path, "query", "SELECT 1", ASSAY_STORE_PASSWORD=PASSWORD, ASSAY_CONFIG="assay.toml")
    assert b"HTTP/1.1" in listener.heard


#: What the file says, and what is in the environment.
REDIRECTED = [
    ('[store]\nurl = "https://evil.test"', {"ASSAY_STORE_PASSWORD": PASSWORD}),
    ('[store]\nurl = "https://evil.test"', {"ASSAY_STORE_PASSWORD_FILE": "/run/secrets/store"}),
    ('[store]\nurl = "https://evil.test"\npassword_file = "/home/me/.pgpass"', {}),
    ('[store]\ntls_ca_file = "evil.pem"', {"ASSAY_STORE_PASSWORD": PASSWORD}),
    ('[judge]\nbase_url = "https://evil.test"', {"ASSAY_JUDGE_API_KEY": PASSWORD}),
    ('[judge]\nbase_url = "https://evil.test"\napi_key_file = ".env"', {}),
    ('[redis]\nurl = "rediss://evil.test"', {"ASSAY_REDIS_PASSWORD_FILE": "/run/secrets/redis"}),
    ('[redis]\nurl = "rediss://evil.test"\nsentinel_password_file = "/etc/pw"', {}),
    ('[notifier]\nalertmanager_urls = "https://evil.test"', {"ASSAY_NOTIFIER_ALERTMANAGER_TOKEN_FILE": "/run/token"}),
    ('[telemetry]\notlp_endpoint = "https://evil.test"', {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=x"}),
]  # fmt: skip


@pytest.mark.parametrize(("file", "environment"), REDIRECTED)
def test_secrets_from_elsewhere_go_where_a_named_file_or_the_environment_says(
    file: str, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith(("ASSAY_", "OTEL_"))]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "assay.toml").write_text(file)
    with pytest.raises(SettingsError, match=r"ASSAY_CONFIG=assay\.toml"):
        load_settings()
    with pytest.raises(SettingsError, match=r"ASSAY_CONFIG=assay\.toml"):  # the SDK reads the same file
        Capture.from_env(environment=environment)
    monkeypatch.setenv("ASSAY_CONFIG", "assay.toml")
    load_settings()
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path))
    load_settings()
    Capture.from_env(environment=environment | {"ASSAY_CONFIG": str(tmp_path)})


def test_the_environments_own_address_wins_and_harmless_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = '[store]\nurl = "https://evil.test"\nuser = "u"\n[judge]\nbase_rate = 0.5\n'
    environment = {
        "ASSAY_STORE_URL": "https://ours.test",
        "ASSAY_STORE_PASSWORD": PASSWORD,
        "ASSAY_JUDGE_API_KEY": PASSWORD,
    }
    settings = settings_from(environment, file, implicit=True)
    assert (settings.store.url, settings.store.user, settings.judge.base_rate) == ("https://ours.test", "u", 0.5)
    whole = '[store]\nurl = "https://ours.test"\npassword = "its own"\n'
    assert settings_from({}, whole, implicit=True).store.url == "https://ours.test"


def test_a_named_folder_may_hold_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path))
    assert load_settings().store == Settings().store
    Capture.from_env(environment={"ASSAY_CONFIG": str(tmp_path)})


def test_secrets_that_came_with_a_checkout_are_not_taken_for_those_of_assay_up(
    tmp_path: Path, listener: Listener
) -> None:
    secrets = tmp_path / "data" / "secrets"
    secrets.mkdir(parents=True)
    file = secrets / "sre.toml"
    file.write_text(f'[store]\nurl = "http://127.0.0.1:{listener.port}"\n')
    file.chmod(0o644)
    done = assay(tmp_path, "query", "SELECT 1", ASSAY_STORE_PASSWORD=PASSWORD)
    assert (done.returncode, listener.heard) == (2, b"")
    assert "chmod 600" in done.stderr


@pytest.mark.parametrize("target", ["command: sh -c 'touch ran'", "evil:ran"])
def test_a_settings_file_that_just_lies_there_names_no_code_to_run(tmp_path: Path, target: str) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')\ndef ran(query): return []\n")
    (tmp_path / "golden.jsonl").write_text("")
    (tmp_path / "assay.toml").write_text(
        f'[store]\nurl = "http://127.0.0.1:1"\n[evals]\ndataset = "golden.jsonl"\ntarget = "{target}"\n'
    )
    done = assay(tmp_path, "eval", "nightly", "--once")
    assert done.returncode == 2
    assert "evals.target comes from ./assay.toml" in done.stderr
    assert not (tmp_path / "ran").exists()
    named = assay(tmp_path, "eval", "nightly", "--once", ASSAY_CONFIG="assay.toml")
    assert "evals.target comes from" not in named.stderr


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://10.0.0.1:8123", "10.0.0.1"),
        ("HTTP://store.test", "store.test"),
        ("redis://u:p@one.test:1,two.test:2/0", "one.test"),
        ("redis://u:p@127.0.0.1:1,two.test:2/0", "two.test"),
        ("http://localhost.evil.test", "localhost.evil.test"),
        ("http://127.0.0.1.evil.test", "127.0.0.1.evil.test"),
        ("http://127.0.0.1@evil.test", "evil.test"),
        ("https://store.test", None),
        ("rediss://store.test", None),
        ("http://127.0.0.1:8123", None),
        ("http://127.8.9.1", None),
        ("http://[::1]:8123", None),
        ("http://localhost", None),
        ("unix:///run/redis.sock", None),
        ("", None),
    ],
)
def test_what_is_sent_in_clear_to_another_host_is_known(url: str, host: str | None) -> None:
    assert host_in_clear(url) == host


def test_a_key_is_never_sent_in_clear_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(url: str | None) -> JudgeSettings:
        return JudgeSettings.model_validate({"api_key": "secret-key", "base_url": url})

    with pytest.raises(SettingsError, match=r"gateway\.test unencrypted") as refused:
        key_of(judge("http://gateway.test"))
    assert "secret-key" not in str(refused.value)
    assert key_of(judge("http://127.0.0.1:8080")) == key_of(judge("https://gateway.test")) == "secret-key"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://gateway.test")
    with pytest.raises(SettingsError, match="unencrypted"):
        key_of(judge(None))


def test_passwords_in_clear_are_told_with_what_mends_them() -> None:
    settings = settings_from(
        {
            "ASSAY_REDIS_URL": "redis://u:secret@redis.test",
            "ASSAY_STORE_URL": "http://store.test",
            "ASSAY_STORE_PASSWORD": "secret",
        }
    )
    redis, store = passwords_in_clear(settings)
    assert "rediss://" in redis
    assert "https://" in store
    assert "secret" not in redis + store
    assert (
        passwords_in_clear(
            settings_from({"ASSAY_REDIS_URL": "redis://redis.test", "ASSAY_STORE_URL": "http://store.test"})
        )
        == []
    )


def test_doctor_and_services_say_that_a_password_goes_in_clear(tmp_path: Path) -> None:
    # An address that answers nobody: what is told does not depend on it.
    variables = {
        "ASSAY_REDIS_URL": "redis://u:secret@0.0.0.0:1",
        "ASSAY_STORE_URL": "http://127.0.0.1:1",
        "ASSAY_DRIFT_PORT": "0",
    }
    told = assay(tmp_path, "doctor", **variables)
    assert "transport" in told.stdout
    assert "unencrypted" in told.stdout
    environment = {"PATH": os.environ["PATH"]} | variables
    service = subprocess.Popen(
        [sys.executable, "-m", "assay_drift"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert service.stderr
        first = service.stderr.readline()
    finally:
        service.kill()
        service.communicate()
    assert "unencrypted" in first
    assert "secret" not in first
