"""The commands `scrub` and `pii` as a person types them."""

import json
import subprocess
import sys
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


def test_lines_of_text_between_documents_are_scrubbed_as_text(policy: Path) -> None:
    log = '{"a": "ann@example.com"}\n[INFO] to ann@example.com\n\n12:00 x\n{"n": 4111111111111111}\n'
    mixed = RUN.invoke(app, ["scrub"], input=log)
    expected = '{"a":"[REDACTED]"}\n[INFO] to [REDACTED]\n\n12:00 x\n{"n":"[REDACTED]"}\n'
    assert (mixed.exit_code, mixed.stdout, mixed.stderr) == (0, expected, "")
    rows = RUN.invoke(app, ["scrub", "--explain"], input=log).stdout.splitlines()
    assert [(row["line"], "value" in row) for row in map(json.loads, rows)] == [(1, True), (2, False), (5, True)]
    strict = RUN.invoke(app, ["scrub", "--format", "NDJSON"], input=log)
    assert (strict.exit_code, strict.stdout) == (1, '{"a":"[REDACTED]"}\n\n{"n":"[REDACTED]"}\n')


@pytest.mark.parametrize("line", ["ann@example.com \0\n", "\0ann@example.com and more\n"])
def test_a_nul_here_and_there_is_text_in_whatever_line(policy: Path, line: str) -> None:
    first, later = (RUN.invoke(app, ["scrub"], input=before + line) for before in ("", "x\n"))
    assert (first.exit_code, later.exit_code) == (0, 0)
    assert later.stdout == "x\n" + first.stdout
    assert "ann" not in first.stdout


def test_utf_16_behind_other_lines_is_left_out(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub"], input=b"one\n" + "ann@example.com".encode("utf-16"))
    assert (result.exit_code, result.stdout) == (1, "one\n")
    assert result.stderr == "assay: line 2: UTF-16 or UTF-32, not UTF-8; left out\n"


def test_a_byte_order_mark_stays(policy: Path) -> None:
    for text, expected in (('{"a":"ann@example.com"}\n', '{"a":"[REDACTED]"}\n'), ("ann@example.com", "[REDACTED]")):
        result = RUN.invoke(app, ["scrub"], input=b"\xef\xbb\xbf" + text.encode())
        assert result.stdout_bytes == b"\xef\xbb\xbf" + expected.encode()


def test_a_file_as_an_argument_is_told_how_it_is_read(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub", "app.log"], input="x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "assay: assay scrub reads stdin and takes no file names: assay scrub < FILE\n"


@pytest.mark.parametrize(("closed", "name"), [("<&-", "stdin"), (">&-", "stdout")])
def test_a_closed_stdin_or_stdout_is_told_without_a_traceback(policy: Path, closed: str, name: str) -> None:
    command = f'"{sys.executable}" -m assay_cli scrub {closed}'
    done = subprocess.run(["sh", "-c", command], input=b"x", stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode() == f"assay: {name} is closed; usage: assay scrub < FILE > CLEAN\n"


def test_a_project_that_the_policy_does_not_name_is_told(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub", "--policy", str(policy), "--project", "labs"], input="ann@example.com\n")
    assert (result.exit_code, result.stdout) == (0, "[EMAIL]\n")
    assert result.stderr == (
        "assay: warning: the policy has no section for project 'labs', so the default rules apply; its projects: lab\n"
    )


def test_a_line_that_the_policy_refuses_is_named_once(policy: Path) -> None:
    policy.write_text("[actions]\ncontact = 'refuse'\nonline_identifier = 'refuse'\n")
    text = "ann@example.com, bob@example.com, 203.0.113.7\n"
    result = RUN.invoke(app, ["scrub", "--policy", str(policy)], input=text)
    assert (result.exit_code, result.stdout) == (1, "[REDACTED], [REDACTED], [REDACTED]\n")
    assert result.stderr == "assay: line 1: refused by the policy: contact, online_identifier; redacted\n"


def test_a_name_of_scrub_keys_outside_of_json_is_told_once(policy: Path) -> None:
    policy.write_text("scrub_keys = ['customer_name']\n")
    log = 'INFO {"customer_name": "Ann"}\nINFO customerName=Ann\ncustomer name: Ann\n'
    result = RUN.invoke(app, ["scrub", "--policy", str(policy)], input=log)
    assert (result.exit_code, result.stdout) == (0, log.replace('"Ann"', '"[REDACTED]"'))
    assert result.stderr.startswith("assay: warning: line 2 holds a name of scrub_keys outside of JSON")
    assert result.stderr.count("warning") == 1


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
    assert result.stderr == "assay: line 2: not JSON; left out\nassay: to scrub such lines as text: --format text\n"


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


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ("", "to ann@example.com\n"),
        ("", '{"a": "ann@example.com"}\n'),
        ("[actions]\ncontact = 'refuse'\n", "to ann@example.com\n"),
        ("[actions]\ncontact = 'refuse'\n", '{"a": "ann@example.com"}\n{"a": "x"}\n'),
        ("[actions]\ncontact = 'refuse'\n", '{"a": "x"}\nto ann@example.com\n'),
        ("", '{"a": 1e999, "b": "ann@example.com"}\n'),
        ("", '{}\n{"a": ann@example.com}\n'),
    ],
)
def test_explain_ends_with_the_exit_code_of_scrubbing_itself(policy: Path, rules: str, text: str) -> None:
    policy.write_text(rules)
    scrubbed, explained = (
        RUN.invoke(app, ["scrub", "--policy", str(policy), *more], input=text) for more in ([], ["--explain"])
    )
    assert explained.exit_code == scrubbed.exit_code
    assert [bool(said) for said in (explained.stderr, scrubbed.stderr)] == [scrubbed.exit_code == 1] * 2
    lines = [{line.split(":")[1] for line in said.splitlines()} for said in (explained.stderr, scrubbed.stderr)]
    assert lines[0] == lines[1], "they name the same lines"
    assert "ann@" not in explained.stdout + explained.stderr


def test_what_is_no_text_is_refused(policy: Path) -> None:
    result = RUN.invoke(app, ["scrub"], input="ann@example.com".encode("utf-16"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "iconv" in result.stderr


def test_an_action_for_a_category_that_nothing_detects_is_named(policy: Path) -> None:
    policy.write_text('[actions]\nhealth = "refuse"\ncontact = "label"\n[projects.lab.actions]\nbiometric = "refuse"\n')
    result = RUN.invoke(app, ["pii", "policy", "check", str(policy)])
    assert result.exit_code == 0
    assert "no family detects biometric, health" in result.stderr
    policy.write_text(
        '[actions]\nhealth = "refuse"\n[patterns.icd]\ncategory = "health"\npattern = "[A-Z][0-9]{2}\\\\.[0-9]"\n'
    )
    assert RUN.invoke(app, ["pii", "policy", "check", str(policy)]).stderr == ""


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
    assert "nope.toml: no such file" in result.output
    assert "Errno" not in result.output
