"""With whose credentials a command speaks to Redis and the store."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from assay_cli.errors import CommandError
from assay_schema.settings import FILE_VARIABLE, Settings

Identity = Literal["sre", "exporter", "owner"]

DataDirectory = Annotated[
    Path,
    typer.Option(
        "--data", help="Data directory of `assay up`, whose credentials are used unless settings name others."
    ),
]
DEFAULT_DATA = Path("data")


def settings_for(identity: Identity, data: Path) -> Settings:
    """Settings with the credentials of an identity. Raises `SettingsError` or `CommandError`.

    `ASSAY_CONFIG` decides alone. Otherwise the environment and `./assay.toml` do if they say where Redis or the store is;
    if they do not, the file that `assay up` wrote for this identity in its data directory.
    """
    from assay_runtime.config import load_settings

    if os.environ.get(FILE_VARIABLE):
        return load_settings()
    settings = load_settings()
    if "url" in settings.redis.model_fields_set | settings.store.model_fields_set:
        return settings
    file = secrets_file(identity, data)
    try:
        present = file.exists()
    except PermissionError:
        raise CommandError(
            f"not allowed to read {file}; run this as the user who ran `assay up`, or name a settings file with {FILE_VARIABLE}"
        ) from None
    return load_settings(file) if present else settings


def secrets_file(identity: Identity, data: Path) -> Path:
    """Where `assay up` keeps the settings of an identity."""
    return data / "secrets" / f"{identity}.toml"
