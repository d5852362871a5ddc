"""Command groups that are imported on first use: `assay --version` imports none of them."""

import importlib
from collections.abc import Mapping, MutableMapping
from importlib import resources
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """A group of commands that are given as `module:attribute`: a function, or a `typer.Typer`."""

    members: ClassVar[Mapping[str, str]] = {}
    #: The panel of the help in which a command is listed, by name; empty: all are in one.
    panels: ClassVar[Mapping[str, str]] = {}
    #: The words of a command line that lead to this group.
    path: tuple[str, ...] = ()

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands by name, imported."""
        return {name: _loaded((*self.path, name), where) for name, where in self.members.items()}

    @commands.setter
    def commands(self, value: MutableMapping[str, Any]) -> None:
        assert not value, "a lazy group has members"

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, in order."""
        return list(self.members)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Import and return a command; None if there is no command of this name."""
        where = self.members.get(cmd_name)
        if where is None:
            return None
        command = _loaded((*self.path, cmd_name), where)
        if panel := self.panels.get(cmd_name):
            command.rich_help_panel = panel
        return command

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option `--help`, without a type."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


def lazy_group(help_text: str, members: Mapping[str, str], **settings: Any) -> typer.Typer:
    """Return a group whose commands are given by name as `module:attribute`."""
    cls = type("Group", (LazyGroup,), {"members": dict(members)})
    return typer.Typer(cls=cls, no_args_is_help=True, help=help_text, **settings)


def _loaded(path: tuple[str, ...], where: str) -> Any:
    module, _, attribute = where.partition(":")
    member = getattr(importlib.import_module(module), attribute)
    if isinstance(member, typer.Typer):
        group = typer.main.get_group(member)
        group.name = path[-1]
        finish(group, path)
        return group
    single = typer.Typer(add_completion=False)
    single.command(path[-1])(member)
    command = typer.main.get_command(single)
    finish(command, path)
    return command


def finish(command: Any, path: tuple[str, ...]) -> None:
    """Complete the help of a command, or of a group and its commands: examples, and no type for a flag."""
    for option in (*command.params, command.get_help_option(typer.Context(command))):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    if isinstance(command, LazyGroup):
        command.path = path  # it completes its commands when they are loaded
    elif commands := getattr(command, "commands", None):
        for name, each in commands.items():
            finish(each, (*path, name))
    else:
        command.epilog = "\n".join(["Examples:", *(each.replace("[", "\\[") for each in examples_of(path))])


def examples_of(path: tuple[str, ...]) -> list[str]:
    """Return the examples of one command; none for a group."""
    begin = " ".join(["assay", *path])
    return [line for line in all_examples() if line == begin or line.startswith(f"{begin} ")]


def all_examples() -> list[str]:
    """Return every example, from `examples.txt`."""
    lines = resources.files(__package__).joinpath("examples.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
