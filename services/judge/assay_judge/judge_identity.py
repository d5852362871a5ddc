"""Identity of a judge: everything that must be equal for two scores to be comparable. Pure."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

Backend = Literal["anthropic", "anthropic-batch", "openai", "lexical"]


@dataclass(frozen=True)
class JudgeIdentity:
    """A judge. A change of any part makes a new fingerprint, which starts a new series."""

    backend: Backend
    model: str
    prompt_hash: str
    schema_hash: str
    effort: str | None = None
    #: For a model that several APIs offer: the API, and how it is asked for JSON.
    endpoint: str = ""

    @property
    def fingerprint(self) -> str:
        """Short hexadecimal digest. Single calls and batches are the same judge at different prices."""
        kind = "anthropic" if self.backend == "anthropic-batch" else self.backend
        parts = (
            kind,
            self.model,
            self.prompt_hash,
            self.schema_hash,
            self.effort or "",
            *filter(None, [self.endpoint]),
        )
        return sha256("\n".join(parts).encode()).hexdigest()[:16]
