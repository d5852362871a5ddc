"""How capture is switched on and set up: the precedence of the switch, and errors at start that say what would fit."""

from pathlib import Path

import pytest

from assay_capture import Capture, CaptureStats, SettingsError

FILES = {"no file": None, "silent": "", "true": "[capture]\nenabled = true\n", "false": "[capture]\nenabled = false\n"}
#: The file, ASSAY_CAPTURE, and whether capture is on.
SWITCH = [
    ("no file", None, False),
    ("no file", "1", True),
    ("no file", "true", False),
    ("no file", "yes", False),
    ("no file", "01", False),
    ("no file", " 1", False),
    ("no file", "", False),
    ("no file", "0", False),
    ("silent", None, False),
    ("silent", "1", True),
    ("true", None, True),
    ("true", "0", True),
    ("true", "1", True),
    ("false", None, False),
    ("false", "1", False),
]


@pytest.mark.parametrize(("file", "variable", "on"), SWITCH)
def test_the_file_decides_then_the_variable_exactly_1_then_off(
    file: str, variable: str | None, on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if (text := FILES[file]) is not None:
        (tmp_path / "assay.toml").write_text(text)
    capture = Capture.from_env(service="s", environment={} if variable is None else {"ASSAY_CAPTURE": variable})
    assert capture.enabled is on


def test_assay_config_names_the_file_and_wins_over_the_one_in_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assay.toml").write_text(FILES["false"] or "")
    (tmp_path / "other.toml").write_text(FILES["true"] or "")
    assert Capture.from_env(environment={"ASSAY_CONFIG": str(tmp_path / "other.toml")}).enabled


#: A file, an environment, and what the error must say.
TYPOS = [
    ("[capture]\nenabled = 'yes'", {}, "exactly true or false"),
    ("[capture]\nenable = true", {}, "did you mean enabled?"),
    ("[captur]\n", {}, "did you mean capture?"),
    ("[capture", {}, "not valid TOML"),
    ("[capture]\nscrub_pii = 0", {}, "exactly true or false"),
    ("", {"ASSAY_CAPTURE_SCRUB_PII": "False"}, "ASSAY_CAPTURE_SCRUB_PII"),
    ("", {"ASSAY_CAPTURE_DURABILITY": "disk"}, "'memory', 'spool' or 'fsync'"),
    ("", {"ASSAY_CAPTURE_QUEUE_ENTRIES": "0"}, "greater than or equal to 1"),
    ("", {"ASSAY_CAPTURE_PROJECT": "no spaces"}, "ASSAY_CAPTURE_PROJECT"),
    ("", {"ASSAY_CAPTURE_SERVICE": "x" * 256}, "255 characters"),
    ("", {"ASSAY_REDIS_URL": "http://user:hunter2@host"}, "redis://"),
    ("", {"ASSAY_CONFIG": "missing.toml"}, "file not found"),
]


@pytest.mark.parametrize(("file", "environment", "says"), TYPOS)
def test_a_typo_stops_the_start_and_names_what_would_fit(
    file: str, environment: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assay.toml").write_text(file)
    with pytest.raises(SettingsError) as error:
        Capture.from_env(environment={"ASSAY_CAPTURE": "1", **environment})
    assert says in str(error.value)
    assert "hunter2" not in str(error.value)


def test_unknown_variables_do_not_stop_a_producer_and_are_named_once_with_what_is_similar(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_capture.configuration._warned", set())
    environment = {
        "ASSAY_JUDGE_MODEL": "x", "ASSAY_CONFIG": "", "ASSAY_TARGET_TOKEN": "t", "ASSAY_CAPTUER": "1", "ASSAY_CAPTURE_SIMK": "hunter2",
        "ASSAY_OF_A_LATER_SERVICE": "x", "ASSAYER": "x",
    }  # fmt: skip
    for _ in range(2):
        assert not Capture.from_env(environment=environment).enabled
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "ASSAY_CAPTUER (did you mean ASSAY_CAPTURE?), ASSAY_CAPTURE_SIMK (did you mean ASSAY_CAPTURE_SINK?), ASSAY_OF_A_LATER_SERVICE"
    ]
    Capture.from_env(environment=environment | {"ASSAY_NEXT": "x"})
    assert caplog.records[-1].getMessage().endswith(": ASSAY_NEXT")
    assert "hunter2" not in caplog.text


#: The argument, ASSAY_CAPTURE_SERVICE, OTEL_SERVICE_NAME, and the service that events carry.
SERVICES = [
    ("argument", "setting", "otel", "argument"),
    (None, "setting", "otel", "setting"),
    (None, None, "otel", "otel"),
    (None, None, None, "unknown_service"),
]


@pytest.mark.parametrize(("argument", "setting", "otel", "service"), SERVICES)
def test_the_service_is_the_argument_then_the_setting_then_opentelemetrys_name(
    argument: str | None, setting: str | None, otel: str | None, service: str
) -> None:
    named = {"ASSAY_CAPTURE_SERVICE": setting, "OTEL_SERVICE_NAME": otel}
    capture = Capture.from_env(argument, environment={k: v for k, v in named.items() if v is not None})
    assert capture._service == service


def test_when_capture_is_off_every_method_answers_and_nothing_starts() -> None:
    capture = Capture.from_env(environment={})
    ids = {
        capture.retrieval(tool_name="query", query="q", retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1),
        capture.answer(query="q", answer="a", model="m", latency_ms=1),
        capture.feedback(target_event_id="x", verdict="positive"),
    }
    with capture.retrieving(tool_name="query", query="q") as block:
        ids.add(block.event_id)
    assert len(ids) == 4
    assert capture.flush(0)
    capture.close()
    assert capture.stats() == CaptureStats()
