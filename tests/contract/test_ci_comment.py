"""The workflow that comments on a pull request: its script runs here as it stands, against a server that answers as GitHub's API does."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / "deploy/ci/assay-comment.yml"
DOCUMENT: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
JOB = DOCUMENT["jobs"]["comment"]
SCRIPT: str = next(step["run"] for step in JOB["steps"] if "run" in step)
MARK = "<!-- assay gate -->"


class GitHub:
    """Pull requests and comments of one repository, over a real socket."""

    def __init__(self) -> None:
        self.pulls: list[dict[str, Any]] = []
        self.comments: dict[int, dict[str, Any]] = {}
        self.asked: list[str] = []
        github = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                github.asked.append(self.path)
                if url.path == "/repos/team/service/pulls":
                    self.answer([each for each in github.pulls if each["label"] == query["head"]])
                else:
                    number, page = int(url.path.split("/")[5]), int(query["page"])
                    found = [each for each in github.comments.values() if each["issue"] == number]
                    self.answer(found[100 * (page - 1) : 100 * page])

            def do_POST(self) -> None:
                github.add(int(self.path.split("/")[5]), self.body()["body"], bot=True)
                self.answer({})

            def do_PATCH(self) -> None:
                github.comments[int(self.path.split("/")[6])]["body"] = self.body()["body"]
                self.answer({})

            def body(self) -> Any:
                assert self.headers["Authorization"] == "Bearer t0ken"
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, document: Any) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(document).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def add(self, issue: int, body: str, *, bot: bool) -> None:
        number = len(self.comments) + 1
        self.comments[number] = {"id": number, "issue": issue, "body": body, "user": {"type": "Bot" if bot else "User"}}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    server.pulls = [{"number": 7, "label": "fork:change", "head": {"sha": "abc"}}]
    yield server
    server.close()


def comment(github: GitHub, folder: Path, report: str | None, sha: str = "abc") -> str:
    if report is not None:
        (folder / "evaluation").mkdir(exist_ok=True)
        (folder / "evaluation/report.md").write_text(report)
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "team/service",
        "TOKEN": "t0ken",
        "HEAD_OWNER": "fork",
        "HEAD_BRANCH": "change",
        "HEAD_SHA": sha,
        "RUN_URL": "https://example.org/run/1",
    }
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_it_runs_nothing_of_the_pull_request() -> None:
    assert DOCUMENT[True].keys() == {"workflow_run"}, "YAML reads `on` as true"
    assert DOCUMENT["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert [step["uses"].partition("@")[0] for step in JOB["steps"] if "uses" in step] == ["actions/download-artifact"]
    assert "${{" not in SCRIPT, "what a pull request names itself is never part of a script"


def test_it_follows_the_gate_by_its_name_and_reads_what_that_uploads() -> None:
    gate = yaml.safe_load((WORKFLOW.parent / "assay-gate.yml").read_text())
    assert DOCUMENT[True]["workflow_run"]["workflows"] == [gate["name"]]
    (upload,) = [step["with"] for step in gate["jobs"]["gate"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert upload["name"] == JOB["steps"][0]["with"]["name"]
    assert "report.md" in upload["path"].split()


def test_the_first_report_is_a_new_comment_and_the_next_replaces_it(github: GitHub, tmp_path: Path) -> None:
    github.add(7, f"{MARK}\nwritten by somebody who would like to be overwritten", bot=False)
    for number in range(120):
        github.add(7, f"talk {number}", bot=number % 2 == 0)
    assert "pull request 7" in comment(github, tmp_path, "## pass\n| a |\n")
    comment(github, tmp_path, "## fail\n")
    bodies = [each["body"] for each in github.comments.values()]
    assert len(bodies) == 122
    assert bodies[-1].startswith(f"{MARK}\n## fail\n")
    assert "somebody" in bodies[0]


def test_nothing_in_a_report_is_alive(github: GitHub, tmp_path: Path) -> None:
    comment(
        github,
        tmp_path,
        "@team ![x](https://evil.example/x.png) <img src=x> #12 www.evil.example [link](//evil.example)\n",
    )
    (made,) = github.comments.values()
    text = made["body"].removeprefix(MARK).rpartition("[The run]")[0]
    for alive in ("@", "[", "<", "://", "#12", "www."):
        assert alive not in text, alive


def test_a_long_report_is_cut(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, "x" * 500_000)
    assert len(github.comments[1]["body"]) < 65_536


@pytest.mark.parametrize(
    ("report", "sha", "words"), [(None, "abc", "no report"), ("## pass", "old", "no open pull request")]
)
def test_without_a_report_or_a_pull_request_nothing_is_written(
    github: GitHub, tmp_path: Path, report: str | None, sha: str, words: str
) -> None:
    assert words in comment(github, tmp_path, report, sha)
    assert github.comments == {}
