"""Settings of the operator for a process of another identity, such as the console."""

import os
from pathlib import Path

from assay_operations.clients import settings_for
from assay_operations.errors import OperationError
from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from


def operator_settings(data: Path, config: Path | None) -> Settings:
    """Load the operator's settings: those of `config`, or as a command does if it is None.

    Variables of the environment belong to the process's own identity: they do not apply to `config`. Raises `OperationError`.
    """
    if config is None:
        return settings_for("operator", data)
    named = os.environ.get(FILE_VARIABLE)
    if named and Path(named).resolve() == config.resolve():
        raise OperationError(
            "refused", "console.operator_config names the console's own settings file", "name the operator's"
        )
    try:
        return settings_from({}, config.read_text(), file_name=str(config))
    except (OSError, UnicodeDecodeError) as error:
        raise OperationError(
            "unavailable",
            f"the operator's settings cannot be read ({type(error).__name__})",
            "see console.operator_config",
        ) from None
    except SettingsError as error:
        raise OperationError("unavailable", str(error), "see console.operator_config") from None


def data_of(config: Path) -> Path:
    """Return the data directory of a settings file, for audit records that the store has not taken."""
    return config.parent.parent if config.parent.name == "secrets" else config.parent
