"""With whose credentials a command speaks to Redis and the store."""

from pathlib import Path

import pytest

from assay_operations.clients import settings_and_source, settings_for
from assay_operations.errors import OperationError
from assay_schema.settings import SettingsError


@pytest.fixture(autouse=True)
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which `assay up` has been: each identity has a file."""
    monkeypatch.chdir(tmp_path)
    for name in ("ASSAY_CONFIG", "ASSAY_STORE_URL", "ASSAY_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data" / "secrets").mkdir(parents=True)
    for identity in ("sre", "exporter", "owner"):
        file = tmp_path / "data" / "secrets" / f"{identity}.toml"
        file.write_text(f'[store]\nurl = "http://e:1"\nuser = "{identity}"\n')
        file.chmod(0o600)
    return tmp_path


DATA = Path("data")


def test_without_settings_it_is_the_identity_that_up_left() -> None:
    assert settings_for("exporter", DATA).store.user == "exporter"
    assert settings_for("sre", DATA).store.user == "sre"


def test_a_named_file_decides_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text('[store]\nuser = "me"\n')
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "mine.toml"))
    assert settings_for("exporter", DATA).store.user == "me"


def test_settings_that_say_where_the_store_is_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assay.toml").write_text('[store]\nurl = "http://production:8123"\nuser = "me"\n')
    assert settings_for("exporter", DATA).store.user == "me"
    (tmp_path / "assay.toml").unlink()
    monkeypatch.setenv("ASSAY_STORE_URL", "http://elsewhere:1")
    assert settings_for("exporter", DATA).store.url == "http://elsewhere:1"


def test_settings_that_only_tune_the_embedded_system_do_not_hide_its_credentials(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text("[retention]\ndays = 3\n")
    assert settings_for("owner", DATA).store.user == "owner"


def test_where_up_has_not_been_it_says_where_to_go_instead_of_trying_an_address_nobody_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(
        OperationError, match=r"no \./data/secrets: run this in the directory of `make run`.*--data.*ASSAY_CONFIG"
    ):
        settings_for("owner", DATA)


def test_the_directory_of_a_scenario_is_named_if_the_default_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere" / "data" / "my regression" / "secrets").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(OperationError, match=r"no \./data/secrets, .*: pass --data 'data/my regression'$"):
        settings_for("owner", DATA)


def test_an_identity_that_an_older_start_did_not_write_is_named() -> None:
    with pytest.raises(OperationError, match=r"no data/secrets/operator\.toml"):
        settings_for("operator", DATA)


def test_it_is_told_where_settings_were_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_and_source("owner", DATA)[1] == "data/secrets/owner.toml"
    monkeypatch.setenv("ASSAY_STORE_URL", "http://elsewhere:1")
    assert settings_and_source("owner", DATA)[1] == "the environment"
    (tmp_path / "assay.toml").write_text("")
    assert settings_and_source("owner", DATA)[1] == "./assay.toml and the environment"
    monkeypatch.setenv("ASSAY_CONFIG", "assay.toml")
    assert settings_and_source("owner", DATA)[1] == "assay.toml (ASSAY_CONFIG)"


def test_a_named_file_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CONFIG", "missing.toml")
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        settings_for("owner", DATA)
