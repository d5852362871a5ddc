"""The operator's settings for a process of another identity, such as the console."""

import os
from pathlib import Path

from assay_operations.errors import OperationError
from assay_schema.settings import FILE_VARIABLE, Settings, SettingsError, settings_from


def operator_settings(file: Path) -> tuple[Settings, Path]:
    """Read the operator's settings file, and return them with the data directory for audit records that wait.

    Variables of the environment belong to the process's own identity: they do not apply. Raises `OperationError`.
    """
    try:
        settings = settings_from({}, file.read_text(), file_name=str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise OperationError(
            "unavailable",
            f"the operator's settings cannot be read ({type(error).__name__})",
            "see console.operator_config",
        ) from None
    except SettingsError as error:
        raise OperationError("unavailable", str(error), "see console.operator_config") from None
    named = os.environ.get(FILE_VARIABLE)
    if named and Path(named).resolve() == file.resolve():
        raise OperationError(
            "refused", "console.operator_config names the console's own settings file", "name the operator's"
        )
    return settings, file.parent.parent if file.parent.name == "secrets" else file.parent
