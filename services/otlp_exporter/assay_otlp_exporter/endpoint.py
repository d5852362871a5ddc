"""The backend's address and headers, from the settings or the variables of OpenTelemetry.

Pure, except for files of secrets. Settings and variables are not mixed: the headers of a shell may be a key for a
different receiver, and the key in the settings is not for the receiver of a shell.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from assay_runtime.config import secret
from assay_schema.settings import OtlpExporterSettings, SettingsError

_PREFIX = "OTEL_EXPORTER_OTLP_"
_PATH = "/v1/traces"
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[ -~]*")
#: Headers that the request itself decides.
_OWN = {"content-length", "content-type", "content-encoding", "transfer-encoding", "host", "connection"}


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
        return urlsplit(self.url).netloc.rpartition("@")[2]


def check(settings: OtlpExporterSettings, environment: Mapping[str, str] | None = None) -> Endpoint:
    """Return the endpoint, if there is something to export to it. Raises `SettingsError`."""
    if not (settings.tool_calls or settings.retrievals or settings.answers or settings.verdicts):
        raise SettingsError(
            "nothing to export: set one of otlp_exporter.tool_calls, retrievals, answers and verdicts to true"
        )
    return endpoint_of(settings, environment or {})


def endpoint_of(settings: OtlpExporterSettings, environment: Mapping[str, str]) -> Endpoint:
    """Return the endpoint: by the settings, or by variables if none is set, those for traces first.

    Raises `SettingsError`.
    """
    if settings.endpoint:
        environment = {}
    elif settings.headers_file or settings.headers.get_secret_value():
        raise SettingsError(
            "otlp_exporter.headers is set without otlp_exporter.endpoint: set both, or use variables for both"
        )
    if (protocol := _variable(environment, "PROTOCOL")) not in ("", "http/protobuf"):
        raise SettingsError(f"{_PREFIX}PROTOCOL={protocol} is not supported; use http/protobuf")
    if (compression := _variable(environment, "COMPRESSION")) not in ("", "gzip", "none"):
        raise SettingsError(f"{_PREFIX}COMPRESSION={compression} is not supported; use gzip or none")
    headers = secret(settings.headers, settings.headers_file, "otlp_exporter.headers_file")
    headers = headers or _variable(environment, "HEADERS")
    return Endpoint(
        _address(settings, environment), _headers(headers), _trust(settings, environment), compression != "none"
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
    if not fits or re.search(r"[^!-~]|[?#]", address):
        raise SettingsError(
            "otlp_exporter.endpoint must look like http://host:4318 or https://host/path, without a query; "
            "OTLP is sent over HTTP, not gRPC"
        )
    return address


def _headers(text: str) -> dict[str, str]:
    """Parse `NAME=VALUE`, separated by commas or on lines. Errors quote nothing: it may be a key."""
    found = {}
    for part in filter(None, map(str.strip, re.split(r"[,\n]", text))):
        name, is_pair, value = part.partition("=")
        name, value = unquote(name).strip().lower(), unquote(value).strip()
        if not is_pair or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise SettingsError(
                f"otlp_exporter.headers (or {_PREFIX}HEADERS): write NAME=VALUE, not NAME: VALUE, separated by commas, in ASCII; "
                "in a value, a comma is %2C and a space %20"
            )
        if name in _OWN:
            raise SettingsError(f"otlp_exporter.headers (or {_PREFIX}HEADERS): remove {name}, which the exporter sets")
        found[name] = value
    return found


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
