"""Named queries for people who run the system: one file each, with what it answers and its parameters in the comment on top."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Parameter:
    """One `{name:Type}` of a query, and the value it has unless another is given."""

    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class NamedQuery:
    """A query that answers one question. `sql` names the views without a database: run it in the views' database."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    sql: str

    @property
    def defaults(self) -> dict[str, str]:
        """The parameters as they are unless given."""
        return {parameter.name: parameter.default for parameter in self.parameters}


#: `-- hours UInt32 = 24: how far back`
_PARAMETER = re.compile(r"^-- (\w+) ([A-Za-z0-9()]+) = (.*?): (.+)$")


@cache
def named_queries() -> dict[str, NamedQuery]:
    """Every query by its name (the file's, with `-` for `_`), in alphabetical order."""
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
