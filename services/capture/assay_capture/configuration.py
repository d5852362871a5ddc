"""Where the SDK finds its settings: the environment, and the file that `ASSAY_CONFIG` names or else `./assay.toml`."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from assay_schema.events import Project, Service
from assay_schema.limits import SERVICE_MAX_CHARS
from assay_schema.scrubbing import ProducerScrubber
from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from

#: The file that is read if it exists and `ASSAY_CONFIG` names no other.
DEFAULT_FILE = "assay.toml"
_PROJECT: TypeAdapter[str] = TypeAdapter(Project)
_SERVICE: TypeAdapter[str] = TypeAdapter(Service)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Settings for a producer. Raises `SettingsError` naming the setting and what would fit; variables of newer versions are let pass."""
    named = environment.get(FILE_VARIABLE)
    folder = bool(named) and Path(named or "").is_dir()
    path = Path(named or "") / DEFAULT_FILE if folder else Path(named or DEFAULT_FILE)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named and not folder:
            raise SettingsError(f"{FILE_VARIABLE}={named}: there is no such file") from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({type(error).__name__})") from None
    return settings_from(environment, text, file_name=str(path), strict=False, implicit=not named)


def service_name(argument: str | None, settings: Settings, environment: Mapping[str, str]) -> str:
    """The first of: the argument, `capture.service`, `OTEL_SERVICE_NAME`, `unknown_service` (OpenTelemetry's own default)."""
    name = argument or settings.capture.service or environment.get("OTEL_SERVICE_NAME") or "unknown_service"
    try:
        return _SERVICE.validate_python(name)
    except ValidationError:
        raise SettingsError(
            f"capture.service (or ASSAY_CAPTURE_SERVICE): must be 1 to {SERVICE_MAX_CHARS} characters"
        ) from None


def project_name(settings: Settings) -> str:
    """`capture.project`, if it is a valid name."""
    try:
        return _PROJECT.validate_python(settings.capture.project)
    except ValidationError:
        raise SettingsError(
            "capture.project (or ASSAY_CAPTURE_PROJECT): must be letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit, at most 64 characters"
        ) from None


def refuse_credentials(scrubber: ProducerScrubber, **names: str) -> None:
    """Raises `SettingsError`, without the value, where a name that every event carries holds a credential."""
    for name, value in names.items():
        if family := scrubber.credential_in(value):
            raise SettingsError(
                f"capture.{name} (or ASSAY_CAPTURE_{name.upper()}): holds a credential ({family}); it is stored as it is, so use a name"
            )
