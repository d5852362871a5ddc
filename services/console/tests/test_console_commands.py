"""Tests of the commands that pages print."""

import re
from pathlib import Path

import pytest

import assay_console
from assay_console.commands import data_option, with_option
from assay_schema.settings import ConsoleSettings, Settings

TEMPLATES = Path(assay_console.__file__).parent / "templates"
#: A command inside of a sentence or a code element that is printed as it stands.
BARE = re.compile(r"<code[^>]*>\s*assay [a-z]")


def settings(file: Path) -> Settings:
    return Settings(console=ConsoleSettings(operator_config=file))


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("assay doctor", "assay doctor --data /srv/x"),
        (
            "assay dead list\nassay dead drop --all",
            "assay dead list --data /srv/x\nassay dead drop --all --data /srv/x",
        ),
        ("assay dataset export golden > golden.jsonl", "assay dataset export golden --data /srv/x > golden.jsonl"),
        ("assay doctor --data data", "assay doctor --data data"),
        ("assay dataset mine --help", "assay dataset mine --help"),
        ("name it in capture.spool_adopt", "name it in capture.spool_adopt"),
        ("", ""),
    ],
)
def test_a_command_names_the_data_directory_once_and_other_text_stays(command: str, printed: str) -> None:
    assert with_option(command, " --data /srv/x") == printed
    assert with_option(command, "") == command


def test_the_directory_is_that_of_the_operators_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_option(settings(Path("/srv/my data/secrets/operator.toml"))) == " --data '/srv/my data'"
    assert data_option(settings(tmp_path / "other" / "secrets" / "operator.toml")) == " --data other"
    assert data_option(settings(tmp_path / "data" / "secrets" / "operator.toml")) == ""
    assert data_option(settings(Path("/etc/assay/operator.toml"))) == ""


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.name)
def test_no_page_prints_a_command_past_the_function_that_names_the_directory(template: Path) -> None:
    text = template.read_text()
    found = [match[0] for match in BARE.finditer(text) if "--data" not in text[match.start() : match.end() + 40]]
    assert found == []
