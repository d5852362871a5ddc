"""Settings: where a value comes from, what is refused and how, and that no secret is ever shown."""

import pytest
from pydantic import SecretStr

from assay_schema.settings import CaptureSettings, Settings, SettingsError, capture_on, settings_from, variables

SECRET = "hunter2-is-secret"


def refusal(environment: dict[str, str] | None = None, file: str = "", *, strict: bool = True) -> str:
    with pytest.raises(SettingsError) as refused:
        settings_from(environment or {}, file, strict=strict)
    assert refused.value.__cause__ is None
    return str(refused.value)


# --- where a value comes from


@pytest.mark.parametrize(
    ("environment", "file", "rows"),
    [
        ({}, "", 5_000),
        ({}, "[writer]\nbatch_rows = 7", 7),
        ({"ASSAY_WRITER_BATCH_ROWS": "5"}, "", 5),
        ({"ASSAY_WRITER_BATCH_ROWS": "5"}, "[writer]\nbatch_rows = 7", 5),
        ({"ASSAY_WRITER_PORT": "1"}, "[writer]\nbatch_rows = 7", 7),
        ({"WRITER_BATCH_ROWS": "5", "assay_writer_batch_rows": "6"}, "", 5_000),
    ],
)
def test_the_environment_goes_before_the_file_and_the_file_before_the_default(
    environment: dict[str, str], file: str, rows: int
) -> None:
    assert settings_from(environment, file).writer.batch_rows == rows


def test_without_anything_every_setting_is_its_default() -> None:
    assert settings_from({}) == Settings()


#: Settings between 0 and 1.
SHARES = (
    "tolerance", "critical_ratio", "rule_drop", "ks_effect", "silence_ratio", "judge_error_ratio", "kappa_min", "tnr_min",
)  # fmt: skip


@pytest.mark.parametrize("variable", sorted(variables()))
def test_every_variable_sets_its_own_setting_and_no_other(variable: str) -> None:
    section, name = variables()[variable]
    default = getattr(getattr(Settings(), section), name)
    texts = {bool: str(not default).lower(), int: "16", float: "1.5", SecretStr: "redis://x", str: "other"}
    choices = {
        "log_level": "ERROR",
        "log_format": "text",
        "durability": "fsync",
        "scrub": "producer",
        "sink": "both",
        "mode": "cluster" if section == "redis" else "link",
        "replicas": "2",
        "auth": "proxy",
    }
    choices |= dict.fromkeys(
        (
            "queue_bytes",
            "spool_bytes",
            "batch_bytes",
            "held_bytes",
            "high_water_bytes",
            "dead_bytes",
            "file_bytes",
            "body_bytes",
            "otlp_bytes",
            "trace_bytes",
            "open_bytes",
            "in_flight_bytes",
        ),
        "2048",
    )
    choices |= {"rule": "critical", "learning_samples": "32"} | dict.fromkeys(SHARES, "0.25")
    choices |= {"backend": "lexical", "judge": "lexical", "effort": "high", "base_rate": "0.5"}
    choices |= {"limit": "7", "floor": "0.25", "max_rate": "0.25", "fail_on": "high"}
    choices |= {"json_mode": "none", "price_input_usd": "0", "price_output_usd": "2"}
    choices |= dict.fromkeys(("max_input_bytes", "max_output_tokens", "tokens_per_minute"), "2048")
    settings = settings_from({variable: choices[name] if name in choices else texts.get(type(default), "value")})
    assert getattr(getattr(settings, section), name) != default
    changed = {
        (each, field)
        for each in Settings.model_fields
        for field in type(getattr(settings, each)).model_fields
        if getattr(getattr(settings, each), field) != getattr(getattr(Settings(), each), field)
    }
    assert changed == {(section, name)}


def test_no_two_settings_share_a_variable_and_what_is_for_the_file_only_has_none() -> None:
    settings = sum(len(type(getattr(Settings(), section)).model_fields) for section in Settings.model_fields)
    assert len(variables()) == settings - 5
    assert "ASSAY_CAPTURE_ENABLED" not in variables()
    assert "ASSAY_RETENTION_PROJECTS" not in variables()
    assert "ASSAY_ASSEMBLER_RETRIEVAL_TOOLS" not in variables()


def test_projects_keep_their_own_days_in_the_file() -> None:
    assert settings_from({}, "[retention.projects]\nacme = 30\nother = 3650").retention.projects == {
        "acme": 30,
        "other": 3650,
    }


# --- what is refused


@pytest.mark.parametrize(
    ("environment", "file", "message"),
    [
        ({"ASSAY_WRITER_BATCH_ROW": "1"}, "", "unknown setting ASSAY_WRITER_BATCH_ROW; did you mean ASSAY_WRITER_BATCH_ROWS?"),
        ({"ASSAY_REDIS_URI": "1"}, "", "unknown setting ASSAY_REDIS_URI; did you mean ASSAY_REDIS_URL?"),
        ({}, "[writter]\nport = 1", "assay.toml: unknown section [writter]; did you mean writer?"),
        ({}, "[writer]\nbatchrows = 1", "assay.toml: unknown setting writer.batchrows; did you mean batch_rows?"),
        ({}, "port = 1", "assay.toml: unknown section [port]"),
        ({}, "writer = 1", "assay.toml: writer is a section: write [writer] and its settings below"),
        ({"ASSAY_WRITER_PORT": "1"}, "writer = 1", "assay.toml: writer is a section: write [writer] and its settings below"),
        ({"ASSAY_WRITER_PORT": "many"}, "", "writer.port (or ASSAY_WRITER_PORT): must be a whole number"),
        ({"ASSAY_WRITER_PORT": "65536"}, "", "writer.port (or ASSAY_WRITER_PORT): must be less than or equal to 65535"),
        ({}, "[writer]\nbatch_rows = 0", "writer.batch_rows (or ASSAY_WRITER_BATCH_ROWS): must be greater than or equal to 1"),
        ({"ASSAY_CAPTURE_DURABILITY": "disk"}, "", "capture.durability (or ASSAY_CAPTURE_DURABILITY): must be 'memory', "),
        ({"ASSAY_CAPTURE_PROJECT": "my project"}, "", "capture.project (or ASSAY_CAPTURE_PROJECT): String should match pattern"),
        ({"ASSAY_STORE_DATABASE": "a; DROP"}, "", "store.database (or ASSAY_STORE_DATABASE): String should match pattern"),
        ({}, "[retention.projects]\nacme = 'x'", "retention.projects.acme: must be a whole number"),
        ({}, "[capture]\nenabled = 'on'", "capture.enabled: must be exactly true or false"),
        ({}, "[writer", "assay.toml is not valid TOML: "),
    ],
)  # fmt: skip
def test_a_refusal_says_which_setting_and_what_would_fit(environment: dict[str, str], file: str, message: str) -> None:
    assert refusal(environment, file).startswith(message)


def test_the_token_of_an_evaluated_target_is_a_variable_that_no_command_stops_at() -> None:
    assert settings_from({"ASSAY_TARGET_TOKEN": "t"}) == settings_from({})


def test_an_unknown_name_near_to_none_lists_all() -> None:
    message = refusal({"ASSAY_XYZZY": "1"})
    assert all(variable in message for variable in variables())


def test_every_wrong_setting_is_named_at_once() -> None:
    message = refusal({"ASSAY_WRITER_PORT": "x", "ASSAY_SCRUBBER_PORT": "y"})
    assert [line.split(" ")[0] for line in message.splitlines()] == ["scrubber.port", "writer.port"]


def test_the_sdk_overlooks_variables_of_newer_services_but_not_wrong_values() -> None:
    assert settings_from({"ASSAY_JUDGEMENT_MODEL": "x"}, strict=False) == Settings()
    assert "writer.port" in refusal({"ASSAY_WRITER_PORT": "x"}, strict=False)


@pytest.mark.parametrize("variable", ["ASSAY_CONFIG", "ASSAY_CAPTURE"])
def test_variables_that_are_no_settings_are_known(variable: str) -> None:
    assert settings_from({variable: "x"}) == Settings()


# --- switches

NO_SWITCH = [
    "yes",
    "no",
    "on",
    "off",
    "1",
    "0",
    "",
    "True",
    "False",
    "TRUE",
    "FALSE",
    " false",
    "false ",
    "f",
    "flase",
    "null",
]


@pytest.mark.parametrize("text", NO_SWITCH)
def test_scrubbing_never_depends_on_a_typo(text: str) -> None:
    message = "capture.scrub_pii (or ASSAY_CAPTURE_SCRUB_PII): must be exactly true or false"
    assert refusal({"ASSAY_CAPTURE_SCRUB_PII": text}) == message
    assert refusal(file=f'[capture]\nscrub_pii = "{text}"') == message


@pytest.mark.parametrize("value", ["0", "1", "0.0", "[]", "{}"])
def test_scrubbing_takes_no_other_type_for_a_switch(value: str) -> None:
    assert "must be exactly true or false" in refusal(file=f"[capture]\nscrub_pii = {value}")


@pytest.mark.parametrize(
    ("environment", "file", "scrubs"),
    [
        ({}, "", True),
        ({"ASSAY_CAPTURE_SCRUB_PII": "false"}, "", False),
        ({"ASSAY_CAPTURE_SCRUB_PII": "true"}, "[capture]\nscrub_pii = false", True),
        ({}, "[capture]\nscrub_pii = false", False),
        ({}, '[capture]\nscrub_pii = "false"', False),
        ({"ASSAY_CAPTURE": "1"}, "", True),
        ({"ASSAY_CAPTURE": "0"}, "[capture]\nenabled = false", True),
        ({"ASSAY_CAPTURE": "0"}, "[capture]\nscrub_pii = false", False),
    ],
)
def test_scrubbing_is_on_unless_exactly_false_whatever_the_capture_switch(
    environment: dict[str, str], file: str, scrubs: bool
) -> None:
    assert settings_from(environment, file).capture.scrub_pii is scrubs


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("variable", [None, "1", "0", "true", ""])
def test_the_file_decides_the_capture_switch_when_it_says_so(enabled: bool, variable: str | None) -> None:
    environment = {} if variable is None else {"ASSAY_CAPTURE": variable}
    assert capture_on(CaptureSettings(enabled=enabled), environment) is enabled


@pytest.mark.parametrize(
    ("variable", "on"),
    [
        ("1", True),
        *((text, False) for text in NO_SWITCH if text != "1"),
        ("true", False),
        ("01", False),
        ("1 ", False),
        ("１", False),
    ],
)
def test_otherwise_capture_is_on_only_for_exactly_1(variable: str, on: bool) -> None:
    assert capture_on(CaptureSettings(), {"ASSAY_CAPTURE": variable}) is on


def test_capture_is_off_when_nobody_says_anything() -> None:
    assert capture_on(settings_from({}).capture, {}) is False


def test_the_capture_switch_of_the_file_has_no_variable() -> None:
    assert "unknown setting ASSAY_CAPTURE_ENABLED" in refusal({"ASSAY_CAPTURE_ENABLED": "true"})


# --- secrets

SECRETS = {"ASSAY_REDIS_URL": f"redis://user:{SECRET}@127.0.0.1:1/0", "ASSAY_STORE_PASSWORD": SECRET}


def test_secrets_are_in_no_text_made_of_settings() -> None:
    settings = settings_from(SECRETS)
    assert settings.store.password.get_secret_value() == SECRET
    for text in (repr(settings), str(settings), f"{settings.redis} {settings.store}", settings.model_dump_json()):
        assert SECRET not in text


@pytest.mark.parametrize(
    "file",
    [
        f'[redis]\nurl = ["{SECRET}"]',
        f'[redis]\nurl = {{ a = "{SECRET}" }}',
        f'[store]\npassword = ["{SECRET}"]\nport = 1',
        f'[store]\npassword = "{SECRET}"\npasword = "{SECRET}"',
        f'redis = "{SECRET}"',
        f'[store]\npassword = "{SECRET}',
        f"[store]\npassword = {SECRET}",
        f'[store]\npassword = "{SECRET}"\npassword = "{SECRET}"',
        f'[capture]\nscrub_pii = "{SECRET}"',
        f'[writer]\nport = "{SECRET}"',
        f'[telemetry]\nlog_level = "{SECRET}"',
        f'[capture]\nproject = "{SECRET} "',
    ],
)
def test_secrets_are_in_no_refusal_even_when_they_stand_in_the_wrong_place(file: str) -> None:
    assert SECRET not in refusal(file=file)


@pytest.mark.parametrize(
    "variable", ["ASSAY_WRITER_PORT", "ASSAY_CAPTURE_SCRUB_PII", "ASSAY_TELEMETRY_LOG_LEVEL", "ASSAY_STORE_PASWORD"]
)
def test_a_refusal_of_a_variable_does_not_repeat_its_value(variable: str) -> None:
    assert SECRET not in refusal({variable: SECRET})
