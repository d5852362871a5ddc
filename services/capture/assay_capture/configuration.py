"""Settings of the SDK: from the environment, and from the file `ASSAY_CONFIG` or `./assay.toml`."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from assay_capture.stats import log
from assay_schema.fields import Project, Service
from assay_schema.limits import PROJECT_RULE, SERVICE_MAX_CHARS
from assay_schema.printable import printable
from assay_schema.scrubbing import ProducerScrubber
from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from, unknown_variables

#: The file that is read if it exists and `ASSAY_CONFIG` is not set.
DEFAULT_FILE = "assay.toml"
#: Characters that are shown of a variable's name.
_NAME_SHOWN = 80
#: Variables that were warned of in this process.
_warned: set[str] = set()
_PROJECT: TypeAdapter[str] = TypeAdapter(Project)
_SERVICE: TypeAdapter[str] = TypeAdapter(Service)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read a producer's settings. Variables of newer versions are ignored.

    Raises `SettingsError` with the setting and its valid values.
    """
    named = environment.get(FILE_VARIABLE)
    folder = bool(named) and Path(named or "").is_dir()
    path = Path(named or "") / DEFAULT_FILE if folder else Path(named or DEFAULT_FILE)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named and not folder:
            raise SettingsError(f"{FILE_VARIABLE}={named}: file not found") from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read ({type(error).__name__})") from None
    settings = settings_from(environment, text, file_name=str(path), strict=False, implicit=not named)
    _warn_of_unknown(environment)
    return settings


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    """Log the variables that set nothing, each once per process: perhaps they are settings of a newer service."""
    unknown = {name: near for name, near in unknown_variables(environment).items() if name not in _warned}
    if unknown:
        _warned.update(unknown)
        shown = ", ".join(
            printable(name[:_NAME_SHOWN]) + (f" (did you mean {near}?)" if near else "")
            for name, near in unknown.items()
        )
        log.warning("this version of the SDK ignores environment variables that it does not know: %s", shown)


def service_name(argument: str | None, settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the service name: argument, `capture.service`, `OTEL_SERVICE_NAME` or `unknown_service`.

    The last is OpenTelemetry's default.
    """
    name = argument or settings.capture.service or environment.get("OTEL_SERVICE_NAME") or "unknown_service"
    try:
        return _SERVICE.validate_python(name)
    except ValidationError:
        raise SettingsError(
            f"capture.service (or ASSAY_CAPTURE_SERVICE): must be 1 to {SERVICE_MAX_CHARS} characters"
        ) from None


def project_name(settings: Settings) -> str:
    """Return `capture.project` if it is a valid name, else raise `SettingsError`."""
    try:
        return _PROJECT.validate_python(settings.capture.project)
    except ValidationError:
        raise SettingsError(f"capture.project (or ASSAY_CAPTURE_PROJECT): must be {PROJECT_RULE}") from None


def refuse_credentials(scrubber: ProducerScrubber, **names: str) -> None:
    """Raise `SettingsError`, without the value, if a name that every event carries contains a credential."""
    for name, value in names.items():
        if family := scrubber.credential_in(value):
            raise SettingsError(
                f"capture.{name} (or ASSAY_CAPTURE_{name.upper()}) contains a credential ({family}); "
                "names are stored unchanged, so use another"
            )
