"""Read the commands and statements in README and docs: the blocks of a language, and why some are not run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Pages for people, whose commands people type.
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "deploy").rglob("*.md")),
)
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of one language; `reason` explains why it is not run."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a block, and its comment, which describes how it ends."""

    text: str
    comment: str

    @property
    def exit_codes(self) -> set[int]:
        """Return 0, and also 1 if the page says that the command can end with it."""
        return {0, 1} if re.search(r"exit code 1|exits 1|\b1 and what\b", self.comment) else {0}

    @property
    def runs_until_interrupted(self) -> bool:
        return "Ctrl-C" in self.comment


def blocks(language: str) -> Iterator[Block]:
    """Yield every block of a language, page by page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _BLOCK.finditer(text):
            if found["language"] == language:
                line = text[: found.start("text")].count("\n")
                own = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
                yield Block(str(page.relative_to(ROOT)), line, language, own, found["reason"])


def statements(block: Block) -> list[str]:
    """Return the SQL statements of a block, which end with a semicolon or with the block."""
    return [statement.strip() for statement in block.text.split(";") if statement.strip()]


def commands(block: Block) -> list[Command]:
    """Return the commands of a block, one per line."""
    found = []
    for line in filter(str.strip, block.text.splitlines()):
        # a comment begins at a `#` that a shell would not read as part of a word
        comment = re.search(r"(?:^|\s)#\s(.*)$", line)
        command = line[: comment.start()] if comment else line
        shlex.split(command)  # raises if a line is not a whole command
        found.append(Command(command.strip(), comment[1] if comment else ""))
    return found
