"""Readers of agents' logs, one for each agent."""

from pathlib import Path
from typing import Final

from assay_sessions.readers import claude_code, codex, gemini, jsonl, opencode, otel
from assay_sessions.readers.reader import Problem, Reader
from assay_sessions.record import Transcript

READERS: Final[dict[str, Reader]] = {
    reader.name: reader
    for reader in (
        opencode.READER,
        claude_code.READER,
        codex.READER,
        gemini.READER,
        otel.READER,
        jsonl.READER,
    )
}


def other_reader(path: Path, reader: Reader) -> str | None:
    """Return the name of the first other reader that finds a session in a file or folder, or None.

    A session without messages does not count.
    """
    return next((name for name, each in READERS.items() if each is not reader and _reads(each, path)), None)


def _reads(reader: Reader, path: Path) -> bool:
    found = (each for store in reader.discover([path]) for each in reader.read(store, None))
    return any(isinstance(each, Transcript) and each.messages for each in found)


__all__ = ["READERS", "Problem", "Reader", "other_reader"]
