"""Named queries for operators: one file each, with a comment on its answer and parameters."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Parameter:
    """A `{name:Type}` parameter of a query, with its default."""

    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class NamedQuery:
    """A query that answers one question. `sql` names the views without a database."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    sql: str

    @property
    def defaults(self) -> dict[str, str]:
        """Return the defaults of the parameters."""
        return {parameter.name: parameter.default for parameter in self.parameters}


#: `-- hours UInt32 = 24: how far back`
_PARAMETER = re.compile(r"^-- (\w+) ([A-Za-z0-9()]+) = (.*?): (.+)$")


@cache
def named_queries() -> dict[str, NamedQuery]:
    """Return every query by name (the file's, with `-` for `_`), in alphabetical order."""
    found = [
        _parse(file.name, file.read_text(encoding="utf-8"))
        for file in files(__name__).iterdir()
        if file.name.endswith(".sql")
    ]
    return {query.name: query for query in sorted(found, key=lambda query: query.name)}


def _parse(file_name: str, text: str) -> NamedQuery:
    summary: list[str] = []
    parameters: list[Parameter] = []
    lines = text.splitlines()
    while lines and lines[0].startswith("--"):
        line = lines.pop(0)
        if match := _PARAMETER.match(line):
            parameters.append(Parameter(match[1], match[2], match[3].strip("'"), match[4]))
        else:
            summary.append(line.removeprefix("--").strip())
    name = file_name.removesuffix(".sql").replace("_", "-")
    return NamedQuery(name, " ".join(summary), tuple(parameters), "\n".join(lines).strip().removesuffix(";"))
