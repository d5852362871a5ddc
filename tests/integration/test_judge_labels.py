"""People label a random sample of judged answers, and are held against each other, with a real store."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from assay_judge import lexical
from assay_judge.calibration import Confusion
from assay_runtime.store import Client, connect, insert_json_rows
from assay_writer.rows import COLUMNS, event_row, score_row
from tests.support.answers import answer_bytes
from tests.support.cli import Cli
from tests.support.store import StoreServer

pytestmark = [pytest.mark.one_day]


@pytest.fixture
def cli(tmp_path: Path, migrated: StoreServer) -> Cli:
    return Cli(tmp_path, store_url=migrated.url)


@pytest.fixture
def answers(migrated: StoreServer) -> Iterator[list[str]]:
    """Ids of 30 judged answers of the base stream; five boosted ones, one that was not scored and one without its answer are there too."""
    base = {"base": True, "inclusion_probability": 0.5, "base_probability": 0.05}
    with connect(migrated.settings().store) as client:
        for table in ("answers", "scores"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        ids = [keep(client, base) for _ in range(30)]
        for _ in range(5):
            keep(client, base | {"base": False})
        keep(client, base | {"status": "abstained", "metrics": {}})
        keep(client, base, with_answer=False)
        yield ids


def keep(client: Client, drawn: dict[str, object], *, with_answer: bool = True) -> str:
    data = answer_bytes(project="default")
    event = orjson.loads(data)
    judge = lexical.judge()
    score = {name: event[name] for name in ("event_id", "project", "service")}
    score |= {
        "score_id": event["event_id"],
        "judged_at": event["created_at"],
        "status": "scored",
        "metrics": {"faithfulness": 1.0},
    }
    score |= {
        "fingerprint": judge.fingerprint,
        "backend": "lexical",
        "model": judge.model,
        "prompt_hash": judge.prompt_hash,
    }
    score |= {"schema_hash": judge.schema_hash, "boosts": [], "checks": {}} | drawn
    if with_answer:
        insert_json_rows(client, "assay_base.answers", event_row(data)[1], 1, COLUMNS["answers"])
    insert_json_rows(client, "assay_base.scores", score_row(orjson.dumps(score))[1], 1, COLUMNS["scores"])
    return str(event["event_id"])


def listed(cli: Cli, *options: str) -> list[str]:
    done = cli.call("judge", "label", "--output", "labels.ndjson", "--list", *options, role="sre")
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def test_the_sample_is_of_the_base_stream_and_the_seeds_own(cli: Cli, answers: list[str]) -> None:
    assert set(listed(cli)) == set(answers)
    few = listed(cli, "--count", "8")
    assert few == listed(cli, "--count", "20")[:8], "a longer list begins with the shorter one"
    assert few == listed(cli, "--count", "8")
    assert few != listed(cli, "--count", "8", "--seed", "1")


def test_labels_are_asked_in_a_terminal_kept_one_by_one_and_not_asked_again(cli: Cli, answers: list[str]) -> None:
    order = listed(cli)
    shown = on_a_terminal(cli, "g\nb\ns\nq\n", "--count", "30")
    assert "1 of 30" in shown
    assert "faithfulness" not in shown, "what the judge said would be repeated"
    path = cli.directory / "labels.ndjson"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"event_id": order[0], "label": "good"},
        {"event_id": order[1], "label": "bad"},
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert listed(cli) == order[2:]
    assert "3 of 30" in on_a_terminal(cli, "g\nq\n", "--count", "30")
    assert listed(cli) == order[3:]


def test_without_a_terminal_or_an_answer_the_command_says_what_to_do(cli: Cli, answers: list[str]) -> None:
    assert b"--list" in cli.call("judge", "label", "--output", "labels.ndjson", role="sre").stderr
    assert b"--output" in cli.call("judge", "label", role="sre").stderr
    assert len(cli.call("judge", "label", "--list", role="sre").stdout.split()) == len(answers)
    done = cli.call("judge", "label", "--output", "labels.ndjson", "--list", "--project", "nobody", role="sre")
    assert done.returncode == 2
    assert b"assay judge status" in done.stderr


def labels(path: Path, said: dict[str, str]) -> str:
    path.write_text("event_id,label\n" + "".join(f"{name},{word}\n" for name, word in said.items()))
    return str(path)


def uuids(count: int) -> list[str]:
    return [f"00000000-0000-7000-8000-{number:012d}" for number in range(count)]


def test_two_people_are_held_against_each_other(cli: Cli, tmp_path: Path) -> None:
    names = uuids(40)
    one = labels(tmp_path / "one.csv", {name: "good" if place < 30 else "bad" for place, name in enumerate(names)})
    other = labels(
        tmp_path / "other.csv", {name: "good" if place < 28 else "bad" for place, name in enumerate(names[:39])}
    )
    done = cli.call("judge", "agreement", one, other, "--json", role="sre")
    found = json.loads(done.stdout)
    assert (found["n"], found["only_first"], found["only_second"]) == (39, 1, 0)
    assert found["differ"] == names[28:30]
    assert found["agreement"] == pytest.approx(37 / 39)
    # By hand: chance is 30/39 * 28/39 + 9/39 * 11/39.
    chance = (30 * 28 + 9 * 11) / 39**2
    assert found["kappa"] == pytest.approx((37 / 39 - chance) / (1 - chance))
    text = cli.call("judge", "agreement", one, other, role="sre").stdout.decode()
    assert f"they differ on {names[28]}" in text
    assert "39 answers or sessions that both labelled (40 and 39 labels)" in text


def test_files_of_different_answers_cannot_be_compared(cli: Cli, tmp_path: Path) -> None:
    one = labels(tmp_path / "one.csv", {uuids(2)[0]: "good"})
    other = labels(tmp_path / "other.csv", {uuids(2)[1]: "good"})
    done = cli.call("judge", "agreement", one, other, role="sre")
    assert done.returncode == 2
    assert b"the same --seed" in done.stderr
    assert b"cannot be read" in cli.call("judge", "agreement", one, str(tmp_path / "none"), role="sre").stderr


def test_people_who_agree_on_nothing_have_a_kappa_no_lower_than_there_is() -> None:
    found = Confusion(0, 3, 3, 0)
    assert found.kappa == -1.0
    assert found.kappa_low == -1.0


def on_a_terminal(cli: Cli, typed: str, *options: str) -> str:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment |= {"ASSAY_CONFIG": str(cli.settings_file("sre")), "TERM": "dumb", "COLUMNS": "200"}
    command = [sys.executable, "-m", "assay_cli", "judge", "label", "--output", "labels.ndjson", *options]
    try:
        os.write(ours, typed.encode())
        done = subprocess.run(
            command,
            cwd=cli.directory,
            env=environment,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0, done.stderr
    return done.stdout
