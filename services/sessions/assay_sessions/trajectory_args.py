"""Compare the arguments of tool calls as JSON: RFC 8785 equality, and a mode for each tool. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, get_args

#: How the arguments of a call must relate to those of the reference.
#: `exact`: equal. `subset`: each argument is one of the reference. `superset`: each argument of the reference is there, others are allowed.
#: `ignore`: any arguments.
ArgsMode = Literal["exact", "subset", "superset", "ignore"]
ARGS_MODES: Final[tuple[ArgsMode, ...]] = get_args(ArgsMode)


class _Verbatim(NamedTuple):
    text: str


def canonical(value: Any) -> str:
    """Return a text that is equal for equal JSON values, as in RFC 8785.

    `1` equals `1.0`, and the order of keys does not count. `true` is not `1`, `"1"` is not `1`, null is not an absent key, and the
    order of a list counts. Integers that a double cannot hold, which RFC 8785 excludes, are compared exactly. Any depth is accepted.
    """
    pieces: list[str] = []
    left: list[Any] = [value]
    while left:
        match left.pop():
            case _Verbatim(text):
                pieces.append(text)
            case bool(truth):
                pieces.append("true" if truth else "false")
            case int(number):
                pieces.append(str(number))
            case float(number):
                pieces.append(str(int(number)) if number.is_integer() else repr(number))
            case Mapping() as members:
                left.append(_Verbatim("}"))
                for name in sorted(members, reverse=True):
                    left += [_Verbatim(","), members[name], _Verbatim(f"{json.dumps(name)}:")]
                pieces.append("{")
            case list() | tuple() as items:
                left.append(_Verbatim("]"))
                for item in reversed(items):
                    left += [_Verbatim(","), item]
                pieces.append("[")
            case other:
                pieces.append(json.dumps(other))
    return "".join(pieces)


@dataclass(frozen=True, slots=True)
class Matching:
    """Rules for comparing arguments: a mode for all tools, and others for named tools."""

    mode: ArgsMode = "exact"
    tools: Mapping[str, ArgsMode] = field(default_factory=dict)

    def of(self, tool: str) -> ArgsMode:
        """Return the mode of a tool."""
        return self.tools.get(tool, self.mode)


EXACT: Final = Matching()
IGNORE_ARGS: Final = Matching("ignore")


class Arguments(NamedTuple):
    """The arguments of one call, in the form in which its tool's mode compares them."""

    tool: str
    mode: ArgsMode
    #: `exact`: the canonical text; `ignore`: empty.
    text: str
    #: `subset` and `superset`: each argument as a canonical text.
    items: frozenset[str]

    def fits(self, reference: "Arguments") -> bool:
        """Tell if a call matches a reference call of the same matching rules."""
        if self.tool != reference.tool:
            return False
        match self.mode:
            case "subset":
                return self.items <= reference.items
            case "superset":
                return self.items >= reference.items
        return self.text == reference.text


def arguments(tool: str, args: Mapping[str, Any], matching: Matching) -> Arguments:
    """Prepare the arguments of a call for comparison."""
    mode = matching.of(tool)
    if mode in ("subset", "superset"):
        return Arguments(tool, mode, "", frozenset(canonical({name: value}) for name, value in args.items()))
    return Arguments(tool, mode, canonical(args) if mode == "exact" else "", frozenset())
