"""Copies of the engine's small definition files, in case a failed write leaves one empty.

An empty definition of a table or database prevents the engine from opening any of them. A refused statement (`writes`)
leaves it behind, so the previous state is correct: the copy, or nothing for a table that was about to be created.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from assay_store.config import engine_directory

log = logging.getLogger(__name__)

_DEFINITIONS = ("metadata/*.sql", "store/*/*/*.sql")
_DELETIONS = "store/*/*/mutation_*.txt"
_FORMAT = "store/*/*/format_version.txt"
#: The engine writes this into every `format_version.txt`.
_FORMAT_VERSION = "1"


def keep(data: Path) -> None:
    """Copy changed definitions, and delete copies of dropped ones. Call only if no write has failed."""
    try:
        _keep(data)
    except OSError as error:
        log.warning("definitions of tables cannot be copied: %s", error.strerror)


def _keep(data: Path) -> None:
    engine, copies = engine_directory(data), data / "definitions"
    files = {file.relative_to(engine): file for pattern in _DEFINITIONS for file in engine.glob(pattern)}
    for name, file in files.items():
        copy = copies / name
        try:
            if copy.exists() and copy.stat().st_mtime_ns == file.stat().st_mtime_ns:
                continue
            if file.stat().st_size:
                copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                fresh = copy.with_suffix(".new")
                shutil.copy2(file, fresh)
                os.replace(fresh, copy)  # noqa: PTH105
        except FileNotFoundError:
            continue  # dropped meanwhile
    for copy in [*copies.glob("metadata/*.sql"), *copies.glob("store/*/*/*.sql")]:
        if copy.relative_to(copies) not in files:
            copy.unlink(missing_ok=True)


def mend(data: Path) -> None:
    """Repair definitions that a failed write left empty, before the engine opens the directory."""
    engine = engine_directory(data)
    for file in _empty(engine, *_DEFINITIONS):
        copy = data / "definitions" / file.relative_to(engine)
        if kept := copy.exists():
            shutil.copy2(copy, file)
        else:
            file.unlink()
        log.warning("%s was empty: %s", file.name, "put back from its copy" if kept else "removed")
    for file in _empty(engine, _DELETIONS):
        file.unlink()
        log.warning("%s was empty: removed", file.name)
    for file in _empty(engine, _FORMAT):
        file.write_text(_FORMAT_VERSION, encoding="ascii")


def _empty(engine: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        for file in engine.glob(pattern):
            if file.stat().st_size == 0:
                yield file
