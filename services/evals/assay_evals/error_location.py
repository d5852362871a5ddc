"""Locate an error in the user's own code, without its text, which may quote a question."""

import importlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

#: Folders of library code: if an error passed through them, the caller's line is more informative.
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
#: Folders of Assay itself, and of the code that imports a module for it. Their frames are skipped.
_SKIPPED = (Path(__file__).parent, Path(importlib.__file__).parent)


def error_location(error: BaseException) -> str | None:
    """Return `file:line` of the innermost frame in the user's code, else of the innermost file.

    Frames of libraries and of Assay do not count; None without a frame. A file that does not compile is the place
    itself. Files below the working directory are named relative to it, others by their name alone.
    """
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return _named(error.filename, error.lineno or 1)
    files = [(name, line) for name, line in _frames(error.__traceback__) if Path(name).is_file()]
    own = [(name, line) for name, line in files if not _of_library(name)]
    return _named(*(own or files)[-1]) if files else None


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not any(Path(name).is_relative_to(folder) for folder in _SKIPPED):
            yield name, trace.tb_lineno
        trace = trace.tb_next


def _of_library(name: str) -> bool:
    return name.startswith(_LIBRARIES) or "site-packages" in Path(name).parts


def _named(name: str, line: int) -> str:
    path, here = Path(name).absolute(), Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path.name}:{line}"
