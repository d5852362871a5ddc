"""Where spans are sent: by settings or by the variables of OpenTelemetry; wrong ones stop the start."""

from pathlib import Path
from typing import Any

import pytest

from assay_otlp_exporter.app import sources
from assay_otlp_exporter.endpoint import check, endpoint_of
from assay_schema.settings import OtlpExporterSettings, SettingsError, settings_from

KEY = "secret-key"


def url(environment: dict[str, str] | None = None, **settings: Any) -> str:
    return endpoint_of(OtlpExporterSettings.model_validate(settings), environment or {}).url


def headers(environment: dict[str, str] | None = None, **settings: Any) -> dict[str, str]:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://host"} | (environment or {})
    return dict(endpoint_of(OtlpExporterSettings.model_validate(settings), environment).headers)


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://cloud.example/api/public/otel", "https://cloud.example/api/public/otel/v1/traces"),
        ("https://cloud.example/api/public/otel/v1/traces", "https://cloud.example/api/public/otel/v1/traces"),
    ],
)
def test_the_path_of_traces_is_added_once(endpoint: str, address: str) -> None:
    assert url(endpoint=endpoint) == address


def test_the_variables_of_opentelemetry_supply_what_is_not_set() -> None:
    general = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://general:4318"}
    traces = general | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces/own/path"}
    assert url(general) == "http://general:4318/v1/traces"
    assert url(traces) == "http://traces/own/path"  # as it is, by the specification
    assert url(traces, endpoint="http://set") == "http://set/v1/traces"


def test_the_headers_of_a_shell_are_not_sent_to_an_endpoint_that_is_set() -> None:
    shell = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization={KEY}", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": f"a={KEY}"}
    assert headers(shell, endpoint="http://set") == {}
    assert headers(shell, endpoint="http://set", headers="b=own") == {"b": "own"}


def test_headers_come_from_the_setting_its_file_or_a_variable(tmp_path: Path) -> None:
    general = {"OTEL_EXPORTER_OTLP_HEADERS": "a=general"}
    traces = general | {"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=traces"}
    file = tmp_path / "headers"
    file.write_text("A=file\nb = Basic x==\n")
    assert headers(general) == {"a": "general"}
    assert headers(traces) == {"a": "traces"}
    assert headers(endpoint="http://host", headers="a=set,B=Basic%20x%3D%3D,c=1%2C2") == {
        "a": "set", "b": "Basic x==", "c": "1,2",
    }  # fmt: skip
    assert headers(endpoint="http://host", headers_file=file) == {"a": "file", "b": "Basic x=="}
    assert headers() == {}


def test_a_key_is_in_no_text_of_the_endpoint_or_the_settings() -> None:
    settings = OtlpExporterSettings.model_validate({"endpoint": "http://host", "headers": f"x-api-key={KEY}"})
    assert KEY not in f"{settings!r}{endpoint_of(settings, {})!r}"


SET = {"endpoint": "http://host"}
SHELL = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://host"}


@pytest.mark.parametrize(
    ("settings", "environment", "message"),
    [
        ({}, {}, "set otlp_exporter.endpoint"),
        ({"endpoint": "127.0.0.1:4318"}, {}, "must look like"),
        ({"endpoint": "grpc://host:4317"}, {}, "not gRPC"),
        ({"endpoint": "http://host:0"}, {}, "must look like"),
        ({"endpoint": "http://[half"}, {}, "must look like"),
        ({"endpoint": "http://host/path?key=1"}, {}, "without a query"),
        ({"endpoint": "http:// host"}, {}, "must look like"),
        ({"endpoint": "http://host\n"}, {}, "must look like"),
        (SET | {"headers": f"no-equals-sign-{KEY}"}, {}, "NAME=VALUE"),
        (SET | {"headers": f"x-api-key: {KEY}"}, {}, "NAME=VALUE, not NAME: VALUE"),
        (SET | {"headers": f"a=1,{KEY}"}, {}, "NAME=VALUE"),
        (SET | {"headers": f"a=%C3%A4{KEY}"}, {}, "in ASCII"),
        (SET | {"headers": f"a=x%0A{KEY}"}, {}, "in ASCII"),
        (SET | {"headers": "Content-Length=5"}, {}, "remove content-length"),
        (SET | {"headers_file": "/nowhere"}, {}, "otlp_exporter.headers_file"),
        (SET | {"tls_ca_file": "/nowhere"}, {}, "tls_ca_file"),
        ({"headers": f"a={KEY}"}, SHELL, "without otlp_exporter.endpoint"),
        ({}, SHELL | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
        ({}, SHELL | {"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "gzip or none"),
        ({}, SHELL | {"OTEL_EXPORTER_OTLP_HEADERS": f"x-api-key: {KEY}"}, "NAME=VALUE"),
    ],
)
def test_what_is_wrong_stops_the_start_and_says_what_to_set(
    settings: dict[str, Any], environment: dict[str, str], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        endpoint_of(OtlpExporterSettings.model_validate(settings), environment)
    assert KEY not in str(error.value) + caplog.text


def test_host_and_port_are_named_without_a_password() -> None:
    def name(endpoint: str) -> str:
        return endpoint_of(OtlpExporterSettings.model_validate({"endpoint": endpoint}), {}).name

    assert name(f"https://user:{KEY}@host/path") == "host"
    assert name("http://[::1]:4318") == "[::1]:4318"


def test_with_everything_off_there_is_nothing_to_export() -> None:
    with pytest.raises(SettingsError, match="nothing to export"):
        check(OtlpExporterSettings.model_validate({"endpoint": "http://host", "tool_calls": False}))


def test_both_streams_are_read_whatever_is_chosen() -> None:
    """Otherwise Redis would keep entries for a group that had chosen more before."""
    chosen = sources(OtlpExporterSettings.model_validate({"tool_calls": False, "verdicts": True}))
    assert [stream.name for stream, *_ in chosen] == ["events", "scores"]


def test_a_file_that_was_only_found_does_not_decide_where_a_key_is_sent() -> None:
    found = '[otlp_exporter]\nendpoint = "http://elsewhere"\n'
    with pytest.raises(SettingsError, match="ASSAY_OTLP_EXPORTER_HEADERS is set"):
        settings_from({"ASSAY_OTLP_EXPORTER_HEADERS": f"x-api-key={KEY}"}, found, implicit=True)
