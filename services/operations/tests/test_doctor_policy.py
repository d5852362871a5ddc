"""`assay doctor` on the scrubbing policy: the file that an operator wrote is the one in use, or the finding says why not."""

from pathlib import Path
from typing import Any

import pytest

from assay_operations.doctor.policy import examine, finding
from assay_schema.settings import ScrubberSettings, Settings

FILE, OTHER = Path("/etc/assay/policy.toml"), Path("policy.toml")
NOTE = "scrubber.policy_file /etc/assay/policy.toml is not in use; an earlier version is: not UTF-8"
#: File of the settings, its problem, a file that no setting names, if the scrubber has a file, and if that is current.
CASES: list[tuple[Path | None, str, Path | None, bool | None, bool, str, str]] = [
    (FILE, "", None, True, True, "ok", "/etc/assay/policy.toml is in use"),
    (FILE, "", None, None, True, "ok", "/etc/assay/policy.toml is valid"),
    (FILE, "", None, False, True, "warn", "/etc/assay/policy.toml is not in use: the running scrubber has the default policy"),
    (FILE, "unknown category", None, None, True, "fail", "scrubber.policy_file cannot be used: unknown category"),
    (FILE, "not UTF-8", None, True, False, "warn", NOTE),
    (None, "", None, True, False, "warn", NOTE),
    (None, "", OTHER, None, True, "warn", "policy.toml is not in use: no setting names it, so the default policy applies"),
    (None, "", OTHER, False, True, "warn", "policy.toml is not in use: no setting names it, so the default policy applies"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "problem", "unnamed", "running", "is_current", "status", "summary"), CASES)
def test_the_finding_names_the_file_and_why_it_is_not_in_use(
    file: Path | None,
    problem: str,
    unnamed: Path | None,
    running: bool | None,
    is_current: bool,
    status: str,
    summary: str,
) -> None:
    notes = ["another note", NOTE]
    found = finding(file, problem, unnamed, exists=True, running=running, is_current=is_current, notes=notes)
    assert found is not None
    assert (found.status, found.summary) == (status, summary)
    assert bool(found.hint) == (status != "ok")


@pytest.mark.parametrize(("unnamed", "running"), [(None, None), (None, False), (None, True), (OTHER, True)])
def test_without_a_file_of_its_own_there_is_no_finding(unnamed: Path | None, running: bool | None) -> None:
    assert finding(None, "", unnamed, exists=False, running=running, is_current=True, notes=[]) is None


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    settings = Settings(scrubber=ScrubberSettings(port=1))  # where nothing answers

    def found() -> list[tuple[str, str]]:
        return [(each.status, each.summary.partition(":")[0]) for each in examine(settings, tmp_path / "data")]

    return found


@pytest.mark.parametrize("folder", [".", "data"])
def test_a_policy_that_no_setting_names_is_found_in_the_working_and_the_data_directory(found: Any, folder: str) -> None:
    assert found() == []
    place = Path(folder) / "policy.toml"
    place.parent.mkdir(exist_ok=True)
    place.write_text("[actions]\ncontact = 'label'\n")
    [(status, summary)] = found()
    assert (status, summary.endswith("policy.toml is not in use")) == ("warn", True)
    for foreign in ("[package]\nname = 'x'\n", "[actions]\n[package]\n", "", "not TOML"):
        place.write_text(foreign)
        assert found() == [], foreign


def test_the_file_of_the_settings_is_checked_without_its_key(found: Any) -> None:
    Path("assay.toml").write_text("[scrubber]\npolicy_file = 'mine.toml'\n")
    assert found() == [("warn", "mine.toml is not on this host, and no scrubber answers here")]
    Path("mine.toml").write_text("[families]\nemail = 'hash'\n")
    assert found() == [("ok", "mine.toml is valid")], "the scrubber has the key"
    Path("mine.toml").write_text("[families]\nemail = 'hashed'\n")
    assert found() == [("fail", "scrubber.policy_file cannot be used")]
