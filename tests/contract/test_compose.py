"""docker-compose.yml says only what the Compose Specification, the settings, the services and this repository know.

No container engine runs here: what an image does inside is not tested, all that the files name is.
"""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from assay_schema.settings import Settings, settings_from
from assay_schema.settings import variables as setting_variables
from tests.contract.compose_files import BASE, OVERRIDE, ROOT, TLS, load, merged, variables
from tests.support.deployed_secrets import make_secrets

SCHEMA = json.loads((Path(__file__).parent / "compose_spec/schema.json").read_text())
PLAIN, WITH_TLS, WITH_OVERRIDE = merged(BASE), merged(BASE, TLS), merged(BASE, TLS, OVERRIDE)
SERVICES: dict[str, dict[str, Any]] = PLAIN["services"]
#: The services of Assay itself, whose image is built here.
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
LASTING = {name: service for name, service in SERVICES.items() if service["restart"] == "always"}
#: What reads streams.
CONSUMERS = ("assembler", "scrubber", "writer", "judge", "drift", "notifier", "otlp_exporter")
#: What other hosts and web pages can reach.
PUBLISHED = ("redis", "clickhouse", "gateway", "console")
#: What speaks to somebody outside: the judge to its model's API, the notifier to receivers of alerts, the exporter to a backend.
REACH_OUT = {"judge", "notifier", "otlp_exporter"}
#: What may differ from the embedded default: where things are, and who one is.
ADDRESSES = {
    "redis.url", "redis.password_file", "redis.tls_ca_file", "store.url", "store.user", "store.password_file",
    "store.tls_ca_file", "telemetry.host", "gateway.listen_host",
    "auditor.directory", "console.listen_host", "console.public_url", "console.session_key_file",
}  # fmt: skip
BOTH = pytest.mark.parametrize("document", [PLAIN, WITH_TLS], ids=["plain", "tls"])
EACH = pytest.mark.parametrize("name", SERVICES)


def settings_of(service: dict[str, Any]) -> Settings:
    environment = {name: str(value) for name, value in service.get("environment", {}).items()}
    return settings_from(environment)


def flat(settings: Settings) -> dict[str, object]:
    return {
        f"{section}.{name}": getattr(getattr(settings, section), name)
        for section, field in Settings.model_fields.items()
        for name in field.annotation.model_fields  # type: ignore[union-attr]
    }


def sources(service: dict[str, Any]) -> dict[str, Path]:
    """Bind mounts: the path inside, and the file or folder of the repository."""
    mounts = [volume.split(":") for volume in service.get("volumes", []) if volume.startswith(".")]
    return {target: ROOT / source for source, target, *_ in mounts}


def secret_names(service: dict[str, Any]) -> set[str]:
    return {each if isinstance(each, str) else each["source"] for each in service.get("secrets", [])}


def run_with_python(service: dict[str, Any]) -> str | None:
    """The module that a service runs."""
    words = [*service.get("entrypoint", []), *service.get("command", [])]
    return words[2] if words[:2] == ["python", "-m"] else None


@pytest.mark.parametrize(
    "document",
    [load(BASE), load(TLS), load(OVERRIDE), PLAIN, WITH_TLS, WITH_OVERRIDE],
    ids=["base", "overlay", "override", "plain", "tls", "tls and override"],
)
def test_it_is_valid_by_the_compose_specification(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


@pytest.mark.parametrize(
    "wrong",
    [
        {"services": {"redis": {"image": "valkey/valkey:8.1.4", "comand": []}}},
        {"services": {"redis": {"healthcheck": {"test": 5}}}},
        {"secrets": {"a": {"path": "x"}}},
    ],
)
def test_the_specification_refuses_what_it_does_not_know(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(wrong)


@pytest.mark.parametrize("name", OURS)
def test_every_service_of_ours_runs_a_module_that_exists_from_the_one_image(name: str) -> None:
    module = run_with_python(OURS[name])
    assert module, "our images run `python -m MODULE`"
    assert importlib.util.find_spec(f"{module}.__main__"), module
    assert OURS[name]["image"] == OURS["writer"]["image"]
    assert OURS[name]["build"] == OURS["writer"]["build"]


def test_every_service_that_moves_events_is_there() -> None:
    modules = {run_with_python(service) for service in LASTING.values()} - {None}
    known = {path.parent.name for path in ROOT.glob("services/*/assay_*/__main__.py")}
    embedded_only = {"assay_store", "assay_cli"}
    assert modules == known - embedded_only


@BOTH
def test_every_variable_is_a_known_setting_and_only_addresses_differ_from_the_embedded_default(
    document: dict[str, Any],
) -> None:
    default = flat(Settings())
    for name in OURS:
        theirs = flat(settings_of(document["services"][name]))  # an unknown name or unfit value raises
        changed = {setting for setting, value in theirs.items() if value != default[setting]}
        assert changed <= ADDRESSES, name


@BOTH
def test_the_environment_leaves_every_other_setting_to_the_settings_file(document: dict[str, Any]) -> None:
    names = {f"ASSAY_{name}".replace(".", "_").upper() for name in ADDRESSES}
    assert names <= set(setting_variables())
    for name in OURS:
        assert set(document["services"][name]["environment"]) <= names, name
        assert "./deploy/docker/settings:/etc/assay:ro" in document["services"][name]["volumes"]
    assert "\nWORKDIR /etc/assay\n" in (ROOT / "deploy/docker/Dockerfile").read_text()


def test_what_the_environment_file_may_say_is_named_in_its_example() -> None:
    example = (ROOT / "deploy/docker/.env.example").read_text()
    named = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.MULTILINE))
    del named["COMPOSE_FILE"]  # of Compose itself
    assert named == variables(BASE) | variables(TLS)


@BOTH
def test_every_service_holds_the_passwords_of_its_own_identity_and_no_others(document: dict[str, Any]) -> None:
    for name in OURS:
        service = document["services"][name]
        settings = settings_of(service)
        expected = set()
        if settings.redis.password_file:
            user = urlsplit(settings.redis.url.get_secret_value()).username
            assert settings.redis.password_file == Path(f"/run/secrets/redis-{user}")
            expected.add(f"redis-{user}")
        if settings.store.password_file:
            assert settings.store.password_file == Path(f"/run/secrets/store-{settings.store.user}")
            expected.add(f"store-{settings.store.user}")
        if settings.console.session_key_file:
            assert settings.console.session_key_file == Path("/run/secrets/console-key")
            expected.add("console-key")
        assert expected, name
        assert {secret for secret in secret_names(service) if not secret.startswith("tls-")} == expected, name


@BOTH
def test_addresses_name_services_and_the_ports_they_are_configured_to_listen_on(document: dict[str, Any]) -> None:
    tls = document is WITH_TLS
    redis_conf = (ROOT / "deploy/redis" / ("redis-tls.conf" if tls else "redis.conf")).read_text()
    redis_port = int(re.findall(r"^(?:tls-)?port ([1-9]\d*)$", redis_conf, re.MULTILINE)[0])
    file = ROOT / "deploy/clickhouse" / ("tls.xml" if tls else "config.d/assay.xml")
    store_port = int(ET.parse(file).findtext("https_port" if tls else "http_port") or 0)  # noqa: S314
    for name in OURS:
        settings = settings_of(document["services"][name])
        if settings.redis.password_file:
            redis = urlsplit(settings.redis.url.get_secret_value())
            assert (redis.scheme, redis.hostname, redis.port) == ("rediss" if tls else "redis", "redis", redis_port)
        if settings.store.password_file:
            store = urlsplit(settings.store.url)
            assert (store.scheme, store.hostname, store.port) == ("https" if tls else "http", "clickhouse", store_port)
    published = {name: document["services"][name]["ports"][0].rsplit(":", 1)[1] for name in ("redis", "clickhouse")}
    assert published == {"redis": str(redis_port), "clickhouse": str(store_port)}
    gateway = settings_of(document["services"]["gateway"]).gateway
    assert document["services"]["gateway"]["ports"][0].endswith(f":{gateway.listen_port}")


@pytest.mark.parametrize("name", [*CONSUMERS, "gateway"])
def test_health_checks_ask_the_port_that_the_service_listens_on(name: str) -> None:
    port = getattr(settings_of(SERVICES[name]), name).port
    assert f"http://127.0.0.1:{port}/healthz" in " ".join(SERVICES[name]["healthcheck"]["test"])


@pytest.mark.parametrize("name", LASTING)
def test_what_runs_for_long_has_a_health_check_and_comes_back(name: str) -> None:
    check = LASTING[name]["healthcheck"]
    assert check["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)


@EACH
def test_every_container_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "no-new-privileges:true" in service["security_opt"]
    assert re.fullmatch(r"[1-9]\d*:\d+", service["user"]), "a number other than root's"
    assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"])
    assert any(mount.startswith("/tmp:") for mount in service["tmpfs"])
    assert not {"privileged", "network_mode", "pid", "ipc", "devices"} & set(service)


@EACH
def test_every_image_is_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.fullmatch(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(\.\d+)?([-.][a-z0-9.]+)?", image), image


@BOTH
def test_every_mounted_file_is_in_the_repository_and_read_only(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        for target, source in sources(service).items():
            assert source.exists(), f"{name}: {source}"
            assert f"{target}:ro" in " ".join(service["volumes"]), f"{name}: {target}"
        volumes = {volume.split(":")[0] for volume in service.get("volumes", []) if not volume.startswith(".")}
        assert volumes <= set(document["volumes"]), name


@BOTH
def test_every_configuration_file_a_command_names_is_mounted(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        words = [word.partition("=")[2] or word for word in service.get("command", [])]
        for path in (word for word in words if word.startswith("/etc/")):
            assert path in sources(service), f"{name}: {path}"


def test_every_secret_is_made_by_the_command_that_makes_them_and_never_committed(tmp_path: Path) -> None:
    made = tmp_path / "secrets"
    make_secrets(made)
    for name, secret in PLAIN["secrets"].items():
        assert (made / name).stat().st_size, name
        assert secret == {"file": f"./deploy/secrets/{name}"}
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"deploy/secrets/", ".env"} <= set(ignored)
    for secret in WITH_TLS["secrets"].values():
        assert secret["file"].startswith("./deploy/secrets/")


@BOTH
def test_every_secret_that_is_used_is_declared_and_none_is_declared_for_nothing(document: dict[str, Any]) -> None:
    used = set().union(*(secret_names(service) for service in document["services"].values()))
    assert used == set(document["secrets"])
    for name, service in document["services"].items():
        read = set(re.findall(r"/run/secrets/([\w.-]+)", json.dumps(service)))
        assert read <= secret_names(service), name


def test_configuration_files_read_only_secrets_that_their_server_is_given() -> None:
    given = {name: secret_names(WITH_TLS["services"][name]) for name in ("redis", "clickhouse")}
    for name, service in (("redis", "redis"), ("clickhouse", "clickhouse")):
        for file in (path for path in (ROOT / "deploy" / name).rglob("*") if path.suffix in {".conf", ".xml"}):
            assert set(re.findall(r"/run/secrets/([\w.-]+)", file.read_text())) <= given[service], file.name


@pytest.mark.parametrize("path", [BASE, TLS, ROOT / "deploy/docker/.env.example"], ids=lambda path: str(path.name))
def test_no_value_looks_like_a_secret(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(r"[A-Za-z0-9_-]{32,}", re.sub(r"ASSAY_\w+|GF_\w+", "", text))
    assert not re.findall(r"://[^/\s:@]+:[^/\s@]+@", text), "no password in an address"
    for name, value in re.findall(r"^\s*(\w*(?:PASSWORD|SECRET|TOKEN|KEY)\w*): *(.+)$", text, re.MULTILINE):
        assert name.endswith("_FILE"), name
        assert value.startswith("/run/secrets/"), name


@BOTH
def test_ports_are_published_on_loopback_only(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        for port in service.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), f"{name}: {port}"


def test_services_of_ours_reach_nothing_outside_but_those_whose_work_is_to() -> None:
    assert PLAIN["networks"]["core"] == {"internal": True}
    assert {name for name, service in OURS.items() if service["networks"] != ["core"]} == REACH_OUT | {
        "gateway",
        "console",
    }
    for name in REACH_OUT:
        assert OURS[name]["networks"] == ["core", "edge"]
        assert "ports" not in OURS[name]
    for name, service in SERVICES.items():
        assert set(service["networks"]) <= set(PLAIN["networks"]), name


def test_what_publishes_a_port_for_producers_and_readers_has_no_way_out() -> None:
    assert PLAIN["networks"]["published"]["driver_opts"] == {"com.docker.network.bridge.enable_ip_masquerade": "false"}
    for name in PUBLISHED:
        assert SERVICES[name]["networks"] == ["core", "published"]


def test_services_start_after_what_they_need_and_stop_before_it() -> None:
    assert SERVICES["migrate"]["depends_on"] == {"clickhouse": {"condition": "service_healthy"}}
    assert SERVICES["writer"]["depends_on"] == {
        "redis": {"condition": "service_healthy"},
        "migrate": {"condition": "service_completed_successfully"},
    }
    assert SERVICES["console"]["depends_on"] == SERVICES["writer"]["depends_on"]
    assert SERVICES["auditor"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    for name in {*CONSUMERS, "gateway"} - {"writer"}:
        assert SERVICES[name]["depends_on"] == {"redis": {"condition": "service_healthy"}}


def test_consumers_can_be_multiplied() -> None:
    for name in CONSUMERS:
        assert not {"container_name", "ports", "hostname"} & set(SERVICES[name])
        assert settings_of(SERVICES[name]).delivery.consumer is None, "two replicas of one name would share entries"


def test_monitoring_is_a_profile_of_its_own() -> None:
    profiles = {name: service.get("profiles") for name, service in SERVICES.items()}
    assert {name for name, profile in profiles.items() if profile == ["observability"]} == {
        "prometheus",
        "alertmanager",
        "grafana",
    }
    assert {name for name, profile in profiles.items() if profile is None} == {
        "redis",
        "clickhouse",
        "migrate",
        "gateway",
        "console",
        "auditor",
        *CONSUMERS,
    } - {"otlp_exporter"}
    assert profiles["otlp_exporter"] == ["otlp"]


def test_the_example_of_an_override_changes_services_that_exist_and_declares_each_secret_that_it_gives() -> None:
    added = load(OVERRIDE)
    assert set(added["services"]) <= set(SERVICES)
    given = set().union(*(secret_names(service) for service in added["services"].values()))
    assert given == set(added["secrets"])
    assert not given & set(PLAIN["secrets"])


def test_the_environment_file_lists_the_files_of_tls_so_that_no_command_drops_them() -> None:
    example = (ROOT / "deploy/docker/.env.example").read_text()
    plain, both = [line.split("=")[1].split(":") for line in example.splitlines() if line.startswith("#COMPOSE_FILE=")]
    assert [ROOT / name for name in plain] == [BASE, TLS]
    assert both == [*plain, "docker-compose.override.yml"]
