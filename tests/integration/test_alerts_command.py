"""`assay alerts` as people run it: the command as a process, real receivers, the real engine."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay_cli.main import app
from assay_operations.channels import unused_channels
from assay_runtime.store import connect, insert_json_rows
from assay_writer.rows import alert_row
from tests.support.alert_samples import EPISODE, episode
from tests.support.cli import Cli
from tests.support.ports import free_port
from tests.support.receivers import Receiver
from tests.support.sample_rows import by_column, lines
from tests.support.store import StoreServer

SECRET = "0123456789abcdef0123456789abcdef"


def test_the_list_shows_what_is_open_and_the_exit_code_says_so(migrated: StoreServer, tmp_path: Path) -> None:
    cli = Cli(tmp_path, store_url=migrated.url)
    quiet = cli.run("alerts", "list", role="sre")
    assert (quiet.returncode, quiet.stdout) == (0, b"no open alerts\n"), quiet.stderr
    rows = [by_column(*alert_row(alert.model_dump_json().encode())[:2]) for alert in episode()]
    with connect(migrated.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.alerts", lines(rows[:2]), 2)
    shown = cli.call("alerts", "list", role="sre")
    assert shown.returncode == 1
    assert b"CRITICAL   shop/search" in shown.stdout
    assert f"accept the current level as the new baseline: assay drift acknowledge {EPISODE}".encode() in shown.stdout
    other = cli.call("alerts", "list", "--project", "other", role="sre")
    assert other.returncode == 0
    with connect(migrated.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.alerts", lines(rows[2:]), 2)
    assert cli.call("alerts", "list", role="sre").returncode == 0
    every = cli.call("alerts", "list", "--all", "--json", role="sre")
    assert [json.loads(line)["state"] for line in every.stdout.splitlines()] == [
        "resolved",
        "recovering",
        "critical",
        "warn",
    ]


def test_the_test_notice_goes_through_every_channel_and_each_says_how_it_went(tmp_path: Path) -> None:
    receiver = Receiver()
    try:
        nowhere = f"http://127.0.0.1:{free_port()}"
        settings = (
            f'[notifier]\nwebhook_urls = "{receiver.url}/hook"\nwebhook_secret = "{SECRET}"\n'
            f'apprise_urls = "json://127.0.0.1:{receiver.url.rpartition(":")[2]}/chat"\nalertmanager_urls = "{nowhere}"\n'
        )
        done = Cli(tmp_path).run("alerts", "test", role="notifier", extra=settings)
    finally:
        receiver.close()
    assert done.returncode == 1, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.decode().splitlines())
    taken = {name.partition("-")[0] for name, answer in said.items() if answer == "accepted the test notice"}
    assert taken == {"log", "webhook", "json"}
    assert "cannot be reached" in said["alertmanager"]
    assert "check notifier.alertmanager_urls" in said["alertmanager"]
    states = [request.json()["state"] for request in receiver.at("/hook")]
    assert states == ["warn", "resolved"]
    chat = receiver.at("/chat")[0].json()
    assert chat["title"] == "[WARN] score drift in project test"
    assert "nothing is wrong" in chat["message"]


def test_a_test_of_no_channel_fails_and_says_what_to_do(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    done = cli.run("alerts", "test", role="notifier")
    assert done.returncode == 1
    assert b"alerts go to the log only: set alertmanager_urls" in done.stderr


def test_channels_that_the_running_notifier_does_not_have_yet_fail_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "data/secrets"
    secrets.mkdir(parents=True)
    Cli(secrets).settings_file("notifier")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_CONFIG", raising=False)
    assert not unused_channels(Path("data"))
    (tmp_path / "assay.toml").write_text(f'[notifier]\nwebhook_urls = "http://a"\nwebhook_secret = "{SECRET}"\n')
    done = CliRunner().invoke(app, ["alerts", "test"])
    assert done.exit_code == 1
    assert "restart `assay up`, then test again" in done.stderr


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [(401, "HTTP 401: it rejected the credentials"), (404, "HTTP 404: it has nothing at that path"), (500, "HTTP 500")],
)
def test_what_an_alertmanager_answers_is_told_with_the_setting_that_mends_it(
    tmp_path: Path, answer: int, wanted: str
) -> None:
    receiver = Receiver()
    receiver.answer = lambda _: answer
    try:
        settings = f'[notifier]\nalertmanager_urls = "{receiver.url.replace("//", "//ann:planted@")}"\n'
        done = Cli(tmp_path).run("alerts", "test", role="notifier", extra=settings)
    finally:
        receiver.close()
    assert done.returncode == 1
    assert wanted in done.stdout.decode()
    assert b"planted" not in done.stdout + done.stderr
    assert receiver.requests[0].headers["authorization"].startswith("Basic ")
