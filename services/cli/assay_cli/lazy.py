"""Groups of commands that are loaded when they are named: `assay --version` loads none of them."""

import importlib
from collections.abc import Mapping, MutableMapping
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """Finds its commands by name as `module:attribute`: a function, or the `typer.Typer` of a group."""

    members: ClassVar[Mapping[str, str]] = {}

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All of them, loaded."""
        return {name: _loaded(name, where) for name, where in self.members.items()}

    @commands.setter
    def commands(self, value: MutableMapping[str, Any]) -> None:
        assert not value, "a lazy group has members"

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Their names, in order."""
        return list(self.members)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """One of them, loaded; None for a name that is none."""
        where = self.members.get(cmd_name)
        return None if where is None else _loaded(cmd_name, where)


def lazy_group(help_text: str, members: Mapping[str, str], **settings: Any) -> typer.Typer:
    """A group of commands, each by its name as `module:attribute`."""
    cls = type("Group", (LazyGroup,), {"members": dict(members)})
    return typer.Typer(cls=cls, no_args_is_help=True, help=help_text, **settings)


def _loaded(name: str, where: str) -> Any:
    module, _, attribute = where.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name)(found)
    return typer.main.get_command(single)
