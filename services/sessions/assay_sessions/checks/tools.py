"""Tools by agent: names by what they do, and arguments that name a path or a command. Pure."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

Role = Literal["read", "edit", "write", "run"]


@dataclass(frozen=True, slots=True)
class ToolNames:
    """Names of an agent's tools by what they do.

    `edit` changes a part of a file, which one should have read. `write` replaces or creates a whole file.
    """

    read: frozenset[str] = frozenset()
    edit: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    run: frozenset[str] = frozenset()

    def role(self, name: str) -> Role | None:
        """Return the role of a tool; None for one with no role."""
        roles: tuple[Role, ...] = ("read", "edit", "write", "run")
        return next((role for role in roles if name in getattr(self, role)), None)


def _names(read: str, edit: str, write: str, run: str) -> ToolNames:
    return ToolNames(*(frozenset(names.split()) for names in (read, edit, write, run)))


#: By `metadata.source`.
TOOL_NAMES: Final[Mapping[str, ToolNames]] = {
    "opencode": _names("read", "edit multiedit patch apply_patch", "write", "bash shell"),
    "claude-code": _names("Read NotebookRead", "Edit MultiEdit NotebookEdit", "Write", "Bash"),
    "codex": _names("view_image", "apply_patch", "", "shell shell_command exec_command local_shell container.exec"),
    "gemini": _names("read_file read_many_files", "replace", "write_file", "run_shell_command"),
}
#: For sessions of other sources: the names of all agents.
ANY_AGENT: Final = ToolNames(
    *(frozenset().union(*(getattr(names, role.name) for names in TOOL_NAMES.values())) for role in fields(ToolNames))
)

_PATHS: Final = ("path", "filePath", "file_path", "absolute_path", "notebook_path", "paths", "file_paths")
_COMMANDS: Final = ("command", "cmd")
_PATCHES: Final = ("input", "patch", "patchText")
_PATCHED: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)


def paths_of(args: Mapping[str, Any]) -> list[str]:
    """Return the paths that the arguments of a call name."""
    found = []
    for name in _PATHS:
        value = args.get(name)
        found += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str) and each]
    return found


def patched(args: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the paths of a patch in the format of `apply_patch`, and whether the file existed before."""
    for name in _PATCHES:
        if isinstance(text := args.get(name), str):
            for kind, path in _PATCHED.findall(text):
                yield path, kind != "Add"


def command_of(args: Mapping[str, Any]) -> str:
    """Return the command that the arguments of a call name; a list is joined."""
    for name in _COMMANDS:
        value = args.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return " ".join(each for each in value if isinstance(each, str))
    return ""


def normal_path(path: str) -> str:
    """Return a path with forward slashes and without `.` and `..`."""
    return posixpath.normpath(path.replace("\\", "/"))


class SeenPaths:
    """Paths that an agent has seen.

    An absolute path and a relative one are the same if one ends with the other."""

    def __init__(self) -> None:
        self._by_name: dict[str, set[str]] = {}
        self._texts: list[str] = []

    def add(self, path: str) -> None:
        """Remember a path."""
        path = normal_path(path)
        self._by_name.setdefault(posixpath.basename(path), set()).add(path)

    def add_command(self, command: str) -> None:
        """Remember a command: a file that it names counts as seen."""
        self._texts.append(command)

    def __contains__(self, path: str) -> bool:
        path = normal_path(path)
        name = posixpath.basename(path)
        if any(_same(path, seen) for seen in self._by_name.get(name, ())):
            return True
        named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        return any(name in text and named.search(text) for text in self._texts)


def _same(one: str, other: str) -> bool:
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
