"""Read user-supplied files, with errors that the user can fix."""

import io
from collections.abc import Iterator
from pathlib import Path

from assay_evals.errors import EvalsError


def lines_of(path: str | Path) -> Iterator[str]:
    """Yield the lines of a text file, without a byte order mark.

    Raises `EvalsError` if it cannot be read; never quotes it.
    """
    line = 1
    try:
        with Path(path).open("rb") as file:
            for line, content in enumerate(file, start=1):
                yield from io.StringIO(content.decode("utf-8-sig" if line == 1 else "utf-8"), newline=None)
    except FileNotFoundError:
        raise EvalsError(f"no file {path}") from None
    except IsADirectoryError:
        raise EvalsError(f"{path} is a folder") from None
    except UnicodeDecodeError:
        raise EvalsError(f"{path}: line {line} is not UTF-8 text: convert the file, for example with iconv") from None
    except OSError as error:
        raise EvalsError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None


def text_of(path: str | Path) -> str:
    """Return the content of a text file. Raises `EvalsError` like `lines_of`."""
    return "".join(lines_of(path))
