"""Commands as a page prints them: with the data directory that they need."""

import re
import shlex
from pathlib import Path

from assay_schema.settings import Settings


def data_option(settings: Settings) -> str:
    """Return the option that names the data directory, if `assay up` made it elsewhere than in ./data."""
    file = settings.console.operator_config
    if file is None or file.parent.name != "secrets" or file.parent.parent.resolve() == Path("data").resolve():
        return ""
    data = file.parent.parent
    shown = data.relative_to(Path.cwd()) if data.is_relative_to(Path.cwd()) else data
    return f" --data {shlex.quote(str(shown))}"


def with_option(text: str, option: str) -> str:
    """Return text whose lines that are commands of Assay end with an option, but before a redirection.

    A command that prints its help needs none.
    """
    return "\n".join(_command(line, option) for line in text.split("\n"))


#: Commands between backticks or after a colon. `assay up` is none: it makes the directory.
_IN_SENTENCE = re.compile(r"(?<=`)assay (?!up\b)[^`]+(?=`)|(?<=: )assay (?!up\b)[a-z][^;,(`]*?(?=\.?$|[;,]| \()")


def in_sentence(text: str, option: str) -> str:
    """Return a sentence whose commands of Assay end with an option. Pure.

    They are between backticks, or after a colon.
    """
    return _IN_SENTENCE.sub(lambda match: _command(match[0], option), text)


def _command(line: str, option: str) -> str:
    if not line.startswith("assay ") or line.endswith("--help") or " --data " in line:
        return line
    command, redirected, file = line.partition(" > ")
    return f"{command}{option}{redirected}{file}"
