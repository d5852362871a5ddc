"""Groups of options: dataclasses whose fields are options of a command."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options: typer sees each field of a dataclass as a separate option."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []

    def option(name: str, default: Any, hint: Any) -> None:
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))

    for parameter in inspect.signature(command).parameters.values():
        if group := groups.get(parameter.name):
            of_field = get_type_hints(group, include_extras=True)
            for field in fields(group):
                option(
                    field.name,
                    inspect.Parameter.empty if field.default is MISSING else field.default,
                    of_field[field.name],
                )
        else:
            option(parameter.name, parameter.default, hints[parameter.name])

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
