"""Settings for this process: the environment over the settings file over defaults."""

import os
import tomllib
from pathlib import Path

from pydantic import SecretStr

from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from

#: The file that is read if it exists and `ASSAY_CONFIG` names no other.
DEFAULT_FILE = "assay.toml"


def load_settings(file: Path | None = None) -> Settings:
    """Read `file`, else what `ASSAY_CONFIG` names, else `./assay.toml` if there is one. Raises `SettingsError`.

    `ASSAY_CONFIG` may name a folder: then it is the `assay.toml` in it, if there is one.
    """
    path, implicit = (file, False) if file else settings_file()
    try:
        text = path.read_text()
    except FileNotFoundError:
        if file or (not implicit and not Path(os.environ[FILE_VARIABLE]).is_dir()):
            raise SettingsError(f"no settings file at {path}; {FILE_VARIABLE} or --config names it") from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {path}: {error}") from None
    return settings_from(os.environ, text, file_name=str(path), implicit=implicit)


def settings_file() -> tuple[Path, bool]:
    """The settings file of this process, and whether nobody named it: it was just there."""
    named = os.environ.get(FILE_VARIABLE)
    if not named:
        return Path(DEFAULT_FILE), True
    return (Path(named) / DEFAULT_FILE if Path(named).is_dir() else Path(named)), False


def is_implicit(section: str, name: str) -> bool:
    """Whether a setting comes from an `assay.toml` that nobody named. Raises `SettingsError`."""
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
    """A secret from its file if one is named, else the setting itself. Raises `SettingsError` naming `variable`."""
    if file is None:
        return value.get_secret_value()
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the file that {variable} names: {error}") from None
