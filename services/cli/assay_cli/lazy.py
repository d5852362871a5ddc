"""Command groups that are imported on first use: `assay --version` imports none of them."""

import importlib
from collections.abc import Mapping, MutableMapping
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """A group of commands that are given as `module:attribute`: a function, or a `typer.Typer`."""

    members: ClassVar[Mapping[str, str]] = {}

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands by name, imported."""
        return {name: _loaded(name, where) for name, where in self.members.items()}

    @commands.setter
    def commands(self, value: MutableMapping[str, Any]) -> None:
        assert not value, "a lazy group has members"

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, in order."""
        return list(self.members)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import and return a command; None if there is no command of this name."""
        where = self.members.get(cmd_name)
        return None if where is None else _loaded(cmd_name, where)


def lazy_group(help_text: str, members: Mapping[str, str], **settings: Any) -> typer.Typer:
    """Return a group whose commands are given by name as `module:attribute`."""
    cls = type("Group", (LazyGroup,), {"members": dict(members)})
    return typer.Typer(cls=cls, no_args_is_help=True, help=help_text, **settings)


def _loaded(name: str, where: str) -> Any:
    module, _, attribute = where.partition(":")
    member = getattr(importlib.import_module(module), attribute)
    if isinstance(member, typer.Typer):
        group = typer.main.get_group(member)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name)(member)
    return typer.main.get_command(single)
