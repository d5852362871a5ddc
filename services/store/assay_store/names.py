"""The engine's functions and table functions, with the roles that may call them (`functions.toml`)."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Names:
    """Names in lower case, because the engine does not always distinguish case.

    Attributes:
        functions: what everybody may call, combinators of aggregate functions left out.
        owner_functions: what only the owner may call.
        nobody_functions: what not even the owner may call.
        table_functions: as `functions`, and likewise the two after it.
        combinators: suffixes that make a new aggregate function of another one.
    """

    functions: frozenset[str]
    owner_functions: frozenset[str]
    nobody_functions: frozenset[str]
    table_functions: frozenset[str]
    owner_table_functions: frozenset[str]
    nobody_table_functions: frozenset[str]
    combinators: tuple[str, ...]

    @property
    def refused_functions(self) -> frozenset[str]:
        """Names that only the owner, or no one, may call."""
        return self.owner_functions | self.nobody_functions

    def allows(self, function: str) -> bool:
        """True if everyone may call this function, with combinators (`sumIf`, `uniqArrayIf`) or without."""
        name = function.lower()
        if name in self.functions:
            return True
        return any(name.endswith(suffix) and self.allows(name.removesuffix(suffix)) for suffix in self.combinators)


@functools.cache
def listed() -> Names:
    """Return the names in the file."""
    document = tomllib.loads(resources.files(__package__).joinpath("functions.toml").read_text(encoding="utf-8"))

    def names(kind: str, whom: str) -> frozenset[str]:
        return frozenset(name.lower() for listed in document[kind][whom].values() for name in listed)

    return Names(
        functions=names("functions", "everyone"),
        owner_functions=names("functions", "owner"),
        nobody_functions=names("functions", "nobody"),
        table_functions=names("table_functions", "everyone"),
        owner_table_functions=names("table_functions", "owner"),
        nobody_table_functions=names("table_functions", "nobody"),
        combinators=tuple(name.lower() for name in document["combinators"]["allowed"]),
    )
