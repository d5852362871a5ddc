"""Readers of agents' logs, one for each agent."""

from typing import Final

from assay_sessions.readers import claude_code, codex, gemini, jsonl, opencode, otel
from assay_sessions.readers.reader import Problem, Reader

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

__all__ = ["READERS", "Problem", "Reader"]
