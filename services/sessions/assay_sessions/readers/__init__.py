"""Readers of agents' logs, one for each agent."""

from typing import Final

from assay_sessions.readers import opencode
from assay_sessions.readers.reader import Problem, Reader

READERS: Final[dict[str, Reader]] = {reader.name: reader for reader in (opencode.READER,)}

__all__ = ["READERS", "Problem", "Reader"]
