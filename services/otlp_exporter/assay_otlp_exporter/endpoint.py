"""The backend's address and headers, from the settings or the variables of OpenTelemetry.

Pure, except for files of secrets. The variables count only if no endpoint is
set: the headers of a shell may be a key for a different receiver.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from opentelemetry.util.re import parse_env_headers

from assay_schema.settings import OtlpExporterSettings, SettingsError

_PREFIX = "OTEL_EXPORTER_OTLP_"
_PATH = "/v1/traces"


@dataclass(frozen=True)
class Endpoint:
    """The address of traces, the headers, which may be secret, and the trust in certificates."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    trust: ssl.SSLContext
    #: True if bodies are compressed with gzip.
    is_compressed: bool = True

    @property
    def name(self) -> str:
        """Return host and port, which contain no secret."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"


def endpoint_of(settings: OtlpExporterSettings, environment: Mapping[str, str]) -> Endpoint:
    """Return the endpoint. Raises `SettingsError`.

    Without `otlp_exporter.endpoint`, variables supply what is not set, those for traces before the general ones.
    """
    if settings.endpoint:
        environment = {}
    if (protocol := _variable(environment, "PROTOCOL")) not in ("", "http/protobuf"):
        raise SettingsError(f"{_PREFIX}PROTOCOL={protocol} is not supported; use http/protobuf")
    headers = _variable(environment, "HEADERS")
    if settings.headers_file:
        headers = _secret(settings.headers_file)
    elif settings.headers.get_secret_value():
        headers = settings.headers.get_secret_value()
    parsed = parse_env_headers(headers, liberal=True)
    if len(parsed) < len([each for each in headers.split(",") if each.strip()]):
        raise SettingsError(
            f"otlp_exporter.headers (or {_PREFIX}HEADERS): write NAME=VALUE, separated by commas; a comma in a value is %2C"
        )
    return Endpoint(
        url=_address(settings, environment),
        headers=parsed,
        trust=_trust(settings, environment),
        is_compressed=_variable(environment, "COMPRESSION") != "none",
    )


def _variable(environment: Mapping[str, str], name: str) -> str:
    """Return a variable of OpenTelemetry; an empty one counts as unset, as in its specification."""
    return environment.get(f"{_PREFIX}TRACES_{name}") or environment.get(f"{_PREFIX}{name}") or ""


def _address(settings: OtlpExporterSettings, environment: Mapping[str, str]) -> str:
    if of_traces := environment.get(f"{_PREFIX}TRACES_ENDPOINT"):
        address = of_traces  # as it is, by the specification
    elif base := settings.endpoint or environment.get(f"{_PREFIX}ENDPOINT"):
        address = base.rstrip("/") if base.rstrip("/").endswith(_PATH) else base.rstrip("/") + _PATH
    else:
        raise SettingsError(
            "no endpoint: set otlp_exporter.endpoint (or ASSAY_OTLP_EXPORTER_ENDPOINT) to the address of an OTLP backend, "
            "such as http://127.0.0.1:4318"
        )
    try:
        parts = urlsplit(address)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError("otlp_exporter.endpoint must look like http://host:4318 or https://host/path")
    return address


def _trust(settings: OtlpExporterSettings, environment: Mapping[str, str]) -> ssl.SSLContext:
    bundle = settings.tls_ca_file or _variable(environment, "CERTIFICATE") or None
    certificate = settings.tls_cert_file or _variable(environment, "CLIENT_CERTIFICATE") or None
    key = settings.tls_key_file or _variable(environment, "CLIENT_KEY") or None
    try:
        trust = ssl.create_default_context(cafile=bundle)
        if certificate:
            trust.load_cert_chain(certificate, key)
    except OSError as error:  # an `SSLError` is one too
        raise SettingsError(
            "otlp_exporter.tls_ca_file, tls_cert_file or tls_key_file cannot be used: "
            f"{error.strerror or type(error).__name__}"
        ) from None
    return trust


def _secret(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(f"cannot read the file in otlp_exporter.headers_file: {reason}") from None
