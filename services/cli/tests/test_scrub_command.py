"""The commands `scrub` and `pii` as a person types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay_cli.main import app
from assay_scrubber.policy import Policy
from assay_scrubber.registry import FAMILIES

RUN = CliRunner()
POLICY = "[actions]\ncontact = 'label'\n[projects.lab.families]\nemail = 'allow'\n"


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def test_stdin_goes_scrubbed_to_stdout_as_text_or_ndjson_by_its_first_line(policy: Path) -> None:
    text = RUN.invoke(app, ["scrub"], input="[INFO] to ann@example.com\n")
    assert (text.exit_code, text.stdout) == (0, "[INFO] to [REDACTED]\n")
    documents = RUN.invoke(app, ["scrub"], input='{"n": 4111111111111111}\n')
    assert (documents.exit_code, documents.stdout) == (0, '{"n":"[REDACTED]"}\n')
    forced = RUN.invoke(app, ["scrub", "--format", "text"], input='{"n": "x"}\n')
    assert forced.stdout == '{"n": "x"}\n'


def test_a_policy_and_a_project_are_followed(policy: Path) -> None:
    labelled = RUN.invoke(app, ["scrub", "--policy", str(policy)], input="ann@example.com 555-123-4567\n")
    assert labelled.stdout == "[EMAIL] [PHONE]\n"
    lab = RUN.invoke(app, ["scrub", "--policy", str(policy), "--project", "lab"], input="ann@example.com 555-123-4567")
    assert lab.stdout == "ann@example.com [PHONE]"


def test_the_policy_file_of_the_settings_is_the_default(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SCRUBBER_POLICY_FILE", str(policy))
    assert RUN.invoke(app, ["scrub"], input="ann@example.com\n").stdout == "[EMAIL]\n"


def test_a_broken_line_is_told_and_ends_with_1_without_showing_it(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub"], input='{}\n{"a": ann@example.com}\n')
    assert (result.exit_code, result.stdout) == (1, "{}\n")
    assert result.stderr == "assay: line 2: not JSON; left out\n"


def test_many_broken_lines_are_counted(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub"], input="{}\n" + "{\n" * 150)
    assert result.stderr.count("left out") == 100
    assert result.stderr.endswith("assay: and 50 more\n")


def test_explain_shows_places_and_no_content(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub", "--explain"], input="to ann@example.com\n")
    assert json.loads(result.stdout) == {
        "line": 1, "family": "email", "rule": "address:@", "class": "9-16 lower mark", "category": "contact", "action": "redact",
        "start": 3, "end": 18,
    }  # fmt: skip


def test_what_is_no_text_is_refused(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub"], input="ann@example.com".encode("utf-16"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "iconv" in result.stderr


def test_a_policy_that_is_wrong_is_2_for_scrub_and_1_for_its_check(policy: Path) -> None:
    policy.write_text("[actions]\ncontacts = 'label'\n")
    said = "unknown category 'contacts'; valid: behavioral"
    for arguments, code in ((["scrub", "--policy", str(policy)], 2), (["pii", "policy", "check", str(policy)], 1)):
        result = RUN.invoke(app, arguments, input="ann@example.com")
        assert (result.exit_code, result.stdout) == (code, "")
        assert said in result.stderr


def test_a_check_shows_the_fingerprint_and_actions_of_each_project(policy: Path) -> None:
    result = RUN.invoke(app, ["pii", "policy", "check", str(policy)])
    default = Policy.from_mapping({"actions": {"contact": "label"}})
    assert result.exit_code == 0
    assert f"{default.fingerprint}  every other project: email label, person_name label, phone label\n" in result.stdout
    assert "lab: email allow, person_name label, phone label" in result.stdout


def test_keys_of_a_policy_are_shown_and_what_is_under_them_goes(policy: Path) -> None:
    policy.write_text("scrub_keys = ['note', 'customer_name']\n")
    made = Policy.from_mapping({"scrub_keys": ["customerName", "note"]})
    shown = RUN.invoke(app, ["pii", "policy", "check", str(policy)]).stdout
    assert shown == f"{made.fingerprint}  every other project: all redact; keys: customer_name, note\n"
    listed = RUN.invoke(app, ["pii", "families", "--policy", str(policy)]).stdout
    assert any(line.split()[:3] == ["scrub_key", "contact", "redact"] for line in listed.splitlines())
    lines = '{"customerName": ["Ann"], "Note": 7, "n": 1}\n'
    scrubbed = RUN.invoke(app, ["scrub", "--policy", str(policy)], input=lines)
    assert scrubbed.stdout == '{"customerName":"[REDACTED]","Note":"[REDACTED]","n":1}\n'
    explained = RUN.invoke(app, ["scrub", "--explain", "--policy", str(policy)], input=lines).stdout.splitlines()
    assert [(row["value"], row["family"]) for row in map(json.loads, explained)] == [(0, "scrub_key"), (1, "scrub_key")]


def test_families_are_listed_with_category_action_and_description(policy: Path) -> None:
    rows = [json.loads(line) for line in RUN.invoke(app, ["pii", "families", "--json"]).stdout.splitlines()]
    assert [row["family"] for row in rows] == list(FAMILIES)
    assert all(row["category"] and row["description"] and row["action"] == "redact" for row in rows)
    table = RUN.invoke(app, ["pii", "families", "--policy", str(policy)]).stdout.splitlines()
    assert table[0].split() == ["family", "category", "action", "description"]
    assert any(line.split()[:3] == ["email", "contact", "label"] for line in table)


def test_ner_without_its_extra_says_what_to_install(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub", "--ner"], input="x")
    assert result.exit_code == 2
    assert "pip install 'assay-scrubber[ner]'" in result.stderr


def test_a_policy_file_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    result = RUN.invoke(app, ["pii", "policy", "check", str(tmp_path / "nope.toml")])
    assert result.exit_code == 1
    assert "nope.toml: there is no such file" in result.output
    assert "Errno" not in result.output
