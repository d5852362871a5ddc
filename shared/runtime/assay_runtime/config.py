"""Settings for this process: the environment over the settings file over defaults."""

import os
from pathlib import Path

from pydantic import SecretStr

from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from


def load_settings(file: Path | None = None) -> Settings:
    """Read `file`, else what `ASSAY_CONFIG` names, else `./assay.toml` if there is one. Raises `SettingsError`."""
    named = os.environ.get(FILE_VARIABLE)
    path = file or (Path(named) if named else Path("assay.toml"))
    try:
        text = path.read_text()
    except FileNotFoundError:
        if file or named:
            raise SettingsError(f"no settings file at {path}; {FILE_VARIABLE} or --config names it") from None
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {path}: {error}") from None
    return settings_from(os.environ, text, file_name=str(path))


def secret(value: SecretStr, file: Path | None, variable: str) -> str:
    """A secret from its file if one is named, else the setting itself. Raises `SettingsError` naming `variable`."""
    if file is None:
        return value.get_secret_value()
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the file that {variable} names: {error}") from None
