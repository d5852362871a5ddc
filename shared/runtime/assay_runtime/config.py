"""Settings of this process: environment variables override the settings file and the defaults."""

import os
import tomllib
from pathlib import Path

from pydantic import SecretStr

from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from

#: The file that is read if it exists and `ASSAY_CONFIG` is not set.
DEFAULT_FILE = "assay.toml"


def load_settings(file: Path | None = None) -> Settings:
    """Read `file`, else `ASSAY_CONFIG`, else `./assay.toml` if it exists. Raises `SettingsError`.

    `ASSAY_CONFIG` may name a folder: then the `assay.toml` in it is read, if it exists.
    """
    path, implicit = (file, False) if file else settings_file()
    try:
        text = path.read_text()
    except FileNotFoundError:
        if file or (not implicit and not Path(os.environ[FILE_VARIABLE]).is_dir()):
            raise SettingsError(f"no settings file at {path}; check {FILE_VARIABLE} or --config") from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {path}: {error}") from None
    return settings_from(os.environ, text, file_name=str(path), implicit=implicit)


def settings_file() -> tuple[Path, bool]:
    """Return the settings file of this process, and True if it was found without being named."""
    named = os.environ.get(FILE_VARIABLE)
    if not named:
        return Path(DEFAULT_FILE), True
    return (Path(named) / DEFAULT_FILE if Path(named).is_dir() else Path(named)), False


def is_implicit(section: str, name: str) -> bool:
    """True if a setting comes from an `assay.toml` that was found without being named.

    Raises `SettingsError`.
    """
    path, implicit = settings_file()
    if not implicit or f"ASSAY_{section}_{name}".upper() in os.environ:
        return False
    try:
        return name in tomllib.loads(path.read_text()).get(section, {})
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read the settings file {path}: {type(error).__name__}") from None


def secret(value: SecretStr, file: Path | None, variable: str) -> str:
    """Read a secret from its file if one is named, else from the setting itself.

    Raises `SettingsError` with `variable`.
    """
    if file is None:
        return value.get_secret_value()
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the file in {variable}: {error}") from None
