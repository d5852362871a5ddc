"""The settings file of each identity in the embedded default. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from assay_access.identities import Identity
from assay_schema.settings import Settings

#: Consumer name of every service under `assay up`. It is stable, so that a service resumes its pending entries after a restart.
CONSUMER = "assay-up"


@dataclass(frozen=True)
class Ports:
    """The ports of the embedded default, all on loopback."""

    redis: int
    store: int
    scrubber: int
    writer: int
    judge: int
    drift: int
    notifier: int
    #: A real Alertmanager, if a scenario starts one.
    alertmanager: int
    #: HTTP clients of the gateway.
    gateway_http: int
    #: Health of the gateway.
    gateway: int
    assembler: int
    otlp_exporter: int
    #: Browsers and clients of the console.
    console_http: int
    #: Health of the console.
    console: int
    auditor: int

    @classmethod
    def from_base(cls, base: int) -> "Ports":
        """Return consecutive ports from `base`."""
        return cls(*range(base, base + len(fields(cls))))


def settings_text(
    identity: Identity,
    *,
    ports: Ports,
    redis_password: str | None,
    store_password: str | None,
    spool: Path,
    session_key: Path | None = None,
    base: Mapping[str, Any] | None = None,
) -> str:
    """Return the settings file of an identity.

    `base` has the user's settings, except addresses and credentials.

    A secret of a section, such as the address of a chat, is only in the file of the service that uses the section.
    """
    foreign = {setting for setting in secret_settings() if setting[0] != identity.name}
    sections: dict[str, dict[str, Any]] = {
        section: {name: value for name, value in values.items() if (section, name) not in foreign}
        for section, values in (base or {}).items()
    }
    for section, kept in (("redis", ("shards", "connect_timeout_s", "command_timeout_s")), ("store", ("timeout_s",))):
        sections[section] = {name: value for name, value in sections.get(section, {}).items() if name in kept}
    if redis_password is not None:
        sections["redis"]["url"] = f"redis://{identity.name}:{redis_password}@127.0.0.1:{ports.redis}/0"
    if store_password is not None:
        sections["store"] |= {
            "url": f"http://127.0.0.1:{ports.store}",
            "user": identity.name,
            "password": store_password,
        }
    capture = sections.get("capture", {})
    # In its own directory all spooled events are for its own Redis, also if its port has changed.
    sections["capture"] = ({} if "spool_dir" in capture else {"spool_dir": str(spool), "spool_adopt": "all"}) | capture
    for service in (field.name for field in fields(Ports) if field.name in Settings.model_fields):
        if service in ("redis", "store"):
            continue
        sections[service] = sections.get(service, {}) | {"port": getattr(ports, service)}
    sections["auditor"].setdefault("directory", str(spool.with_name("audit-log")))
    sections["gateway"]["listen_port"] = ports.gateway_http
    sections["console"]["listen_port"] = ports.console_http
    if session_key is not None:
        sections["console"].setdefault("session_key_file", str(session_key))
        sections["console"].setdefault("operator_config", str(session_key.with_name("operator.toml")))
    sections["telemetry"] = {"log_format": "text"} | sections.get("telemetry", {}) | {"host": "127.0.0.1"}
    head = f"# {identity.name}: {identity.purpose}\n# Written by `assay up` at every start; put your own settings in assay.toml.\n"
    return head + "".join(_toml_section(name, values) for name, values in sections.items() if values)


def secret_settings() -> set[tuple[str, str]]:
    """Return the section and name of every secret setting."""
    secrets = set()
    for section, field in Settings.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        secrets |= {(section, name) for name, inner in model.model_fields.items() if inner.annotation is SecretStr}
    return secrets


def _toml_section(name: str, values: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"\n[{name}]", *(f"{_toml(key)} = {_toml(value)}" for key, value in plain.items())]
    return (
        "\n".join(lines) + "\n" + "".join(_toml_section(f"{name}.{_toml(key)}", table) for key, table in tables.items())
    )


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
