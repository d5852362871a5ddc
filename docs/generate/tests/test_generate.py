"""What is made from the models and settings is checked in, and CI notices when it is not."""

import re
import tomllib
from pathlib import Path

import pytest

from assay_schema.settings import Settings, settings_from, variables
from docs.generate.schemas import COMMAND, ROOT, SCHEMAS, documents, main, stale


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for path, content in documents().items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path


def test_everything_that_is_made_from_the_models_is_checked_in() -> None:
    assert stale(ROOT) == [], f"run: {COMMAND}"


def test_making_it_twice_gives_the_same_bytes() -> None:
    assert documents() == documents()


@pytest.mark.parametrize("path", sorted(documents()))
def test_a_check_names_the_stale_file_and_the_command_that_mends_it(
    checkout: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / path).write_bytes(b"{}")
    assert main(["--check"], root=checkout) == 1
    assert capsys.readouterr().err == f"{path} is stale; run: {COMMAND}\n"
    assert (checkout / path).read_bytes() == b"{}"


def test_a_check_notices_a_missing_file_and_a_schema_of_no_model(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "docs/events.md").unlink()
    (checkout / SCHEMAS / "clicks.v1.json").write_text("{}")
    assert main(["--check"], root=checkout) == 1
    complaints = capsys.readouterr().err
    assert "docs/events.md is stale" in complaints
    assert "clicks.v1.json is stale" in complaints


def test_without_check_the_files_are_written_and_the_check_passes(checkout: Path) -> None:
    (checkout / "docs/settings.md").unlink()
    (checkout / SCHEMAS / "capture.v1.json").write_text("{}")
    (checkout / SCHEMAS / "clicks.v1.json").write_text("{}")
    assert main([], root=checkout) == 0
    assert main(["--check"], root=checkout) == 0


def test_outside_a_checkout_it_says_so_and_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], root=tmp_path) == 2
    assert "checkout" in capsys.readouterr().err


def test_the_example_settings_file_changes_nothing_as_it_is() -> None:
    assert settings_from({}, documents()["assay.example.toml"].decode()) == Settings()


def test_the_example_settings_file_is_valid_with_every_setting_uncommented() -> None:
    text = re.sub(r"^#(?! )", "", documents()["assay.example.toml"].decode(), flags=re.MULTILINE)
    settings = settings_from({}, text)
    given = tomllib.loads(text)
    for section, model in Settings.model_fields.items():
        assert set(given[section]) == set(model.annotation.model_fields), section  # type: ignore[union-attr]
        defaults = model.get_default()
        for name in type(defaults).model_fields:
            if getattr(defaults, name) not in (None, {}):
                assert getattr(getattr(settings, section), name) == getattr(defaults, name), f"{section}.{name}"


def test_the_settings_page_has_every_variable() -> None:
    page = documents()["docs/settings.md"].decode()
    for variable in variables():
        assert f"`{variable}`" in page


@pytest.mark.parametrize("page", ["docs/events.md", "docs/settings.md"])
def test_links_of_the_pages_lead_somewhere(page: str) -> None:
    text = documents()[page].decode()
    headings = {line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#")}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings
        else:
            assert (ROOT / "docs" / target).exists(), target
