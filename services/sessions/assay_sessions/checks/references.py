"""Reference trajectories: a JSONL file with the calls that a session should make, one session a line.

`{"session_id": "ses_1", "calls": [{"name": "read", "args": {"path": "a.py"}}]}`, or with `prompt` instead of `session_id` for all
sessions that begin with that text. Vertex's names are accepted too: `tool_name` and `tool_input`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import orjson
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from assay_schema.problems import in_words
from assay_sessions.checks.errors import ChecksError
from assay_sessions.document import content_text
from assay_sessions.trajectory import ToolCall

LONGEST_LINE_BYTES: Final = 64 * 1024 * 1024
_SPACE: Final = re.compile(r"\s+")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ReferenceCall(_Part):
    """One call of a reference."""

    name: Annotated[str, StringConstraints(min_length=1)] = Field(validation_alias=AliasChoices("name", "tool_name"))
    args: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasChoices("args", "tool_input"))


class Reference(_Part):
    """One line of the file."""

    session_id: str | None = None
    prompt: str | None = None
    calls: list[ReferenceCall]

    @model_validator(mode="after")
    def _names_a_session(self) -> "Reference":
        if (self.session_id is None) == (self.prompt is None):
            raise ValueError("give either session_id or prompt")
        if self.prompt is not None and not normal_prompt(self.prompt):
            raise ValueError("prompt is blank")
        return self


class Named(NamedTuple):
    """A reference as reports name it: its line, and the session if it names one.

    Prompts are never repeated: they can be captured text.
    """

    line: int
    session_id: str | None = None

    def __str__(self) -> str:
        return f"line {self.line} ({self.session_id or 'by prompt'})"


class References:
    """Reference trajectories by session and by prompt. One that names the session takes precedence."""

    def __init__(self) -> None:
        self._by_session: dict[str, list[ToolCall]] = {}
        self._by_prompt: dict[str, list[ToolCall]] = {}
        self._unused: dict[tuple[str, str], Named] = {}

    def add(self, reference: Reference, line: int = 0) -> None:
        """Add the reference of a line. Raises `ChecksError` for a second one of the same session or prompt."""
        calls = [ToolCall(call.name, call.args) for call in reference.calls]
        kind, key = ("session_id", reference.session_id or "")
        if reference.prompt is not None:
            kind, key = "prompt", normal_prompt(reference.prompt)
        known = self._by_session if kind == "session_id" else self._by_prompt
        if key in known:
            raise ChecksError(f"a second reference for the same {kind}: keep one")
        known[key] = calls
        self._unused[kind, key] = Named(line, reference.session_id)

    def of(self, session_id: str, document: Mapping[str, Any]) -> list[ToolCall] | None:
        """Return the reference of a session; None without one."""
        if session_id in self._by_session:
            self._unused.pop(("session_id", session_id), None)
            return self._by_session[session_id]
        if self._by_prompt and (prompt := first_prompt(document)) in self._by_prompt:
            self._unused.pop(("prompt", prompt), None)
            return self._by_prompt[prompt]
        return None

    def __len__(self) -> int:
        return len(self._by_session) + len(self._by_prompt)

    @property
    def unused(self) -> list[Named]:
        """References that no session had so far, in the order of the file."""
        return list(self._unused.values())


def first_prompt(document: Mapping[str, Any]) -> str:
    """Return the first words of a session's user, as prompts are compared; empty without any."""
    contents = document["request"]["contents"]
    texts = (content_text(content) for content in contents if content["role"] == "user")
    return next((prompt for text in texts if (prompt := normal_prompt(text))), "")


def normal_prompt(text: str) -> str:
    """Return a prompt in the form in which prompts are compared.

    It has single spaces, and not the quotation marks that OpenCode's `run` puts around a prompt.
    """
    plain = _SPACE.sub(" ", text).strip()
    return plain[1:-1].strip() if len(plain) > 1 and plain[0] == plain[-1] == '"' else plain


def read_references(path: Path) -> References:
    """Read a file of reference trajectories. Raises `ChecksError` with the line."""
    references = References()
    try:
        with path.open("rb") as file:
            for line, reference in parse_references(file):
                try:
                    references.add(reference, line)
                except ChecksError as error:
                    raise ChecksError(f"line {line}: {error}") from None
    except OSError as error:
        raise ChecksError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except ChecksError as error:
        raise ChecksError(f"{path}: {error}") from None
    if not len(references):
        raise ChecksError(f"{path}: no references: an empty file would compare nothing, silently")
    return references


def parse_references(lines: Iterable[bytes]) -> Iterator[tuple[int, Reference]]:
    """Yield the references of a file's lines, with the number of the line. Raises `ChecksError`."""
    for number, content in enumerate(lines, 1):
        raw = content.removeprefix(b"\xef\xbb\xbf") if number == 1 else content
        if not raw.strip():
            continue
        if len(raw) > LONGEST_LINE_BYTES:
            raise ChecksError(f"line {number}: longer than {LONGEST_LINE_BYTES:,} bytes")
        try:
            yield number, Reference.model_validate(orjson.loads(raw))
        except orjson.JSONDecodeError:
            raise ChecksError(f"line {number}: not JSON") from None
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part)[:64] for part in problem["loc"])
            known = f"; the valid keys are {', '.join(_keys(problem['loc']))}"
            message = f"unknown key{known}" if problem["type"] == "extra_forbidden" else in_words(problem)
            raise ChecksError(f"line {number}: {f'{where}: ' if where else ''}{message}") from None


def _keys(place: tuple[int | str, ...]) -> Iterable[str]:
    return (ReferenceCall if len(place) > 1 else Reference).model_fields
