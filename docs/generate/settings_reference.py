"""Generate the reference of all settings: a page, and a commented example file. Pure."""

from collections.abc import Iterator
from inspect import getdoc
from typing import Any

import orjson
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from assay_schema.settings import FILE_VARIABLE, SWITCH_VARIABLE, Section, Settings, variables

_PAGE = f"""\
# Settings

<!-- Made by `make docs` from shared/schema/assay_schema/settings.py: change it there. -->

An environment variable overrides the settings file, which overrides the default.
The file is `./assay.toml`, or the one that `{FILE_VARIABLE}` names; [`assay.example.toml`](../assay.example.toml) lists every setting.
If `{FILE_VARIABLE}` names a folder, the file is the `assay.toml` in it, if there is one.

A `./assay.toml` that you did not name may come with a checkout of untrusted code. It therefore cannot set the destination of a
secret that it does not contain: if a password, key or token comes from the environment or from a file, an address (`redis.url`,
`store.url`, `judge.base_url`, `notifier.alertmanager_urls`, `telemetry.otlp_endpoint`) or a CA from such a file stops the start.
It also cannot name code for `assay eval nightly` to run. If you trust the file, name it: `{FILE_VARIABLE}=assay.toml`.

An unknown name or an invalid value stops the start with a message that lists the valid ones. Producers differ in one point:
the SDK ignores unknown `ASSAY_*` variables, because their host may have settings of newer services.

Capture is off unless it is switched on. The first that applies decides:

1. `enabled = true` under `[capture]` in the file: on. `enabled = false`: off.
2. `{SWITCH_VARIABLE}` is exactly `1`: on.
3. Otherwise off.
"""

_EXAMPLE = """\
# Every setting of Assay with its default. Made by `make docs` from shared/schema/assay_schema/settings.py.
# Copy to assay.toml and remove the `#` of the settings that you change. Environment variables override this file; see docs/settings.md.
"""


def settings_page() -> str:
    """Return the content of docs/settings.md."""
    by_setting = {place: variable for variable, place in variables().items()}
    parts = [_PAGE]
    for section, model in _sections():
        parts.append(
            f"\n## `[{section}]`\n\n{getdoc(model)}\n\n| setting | environment variable | default | meaning |\n|---|---|---|---|\n"
        )
        for name, field in model.model_fields.items():
            variable = by_setting.get((section, name))
            default = _value(field)
            shown = "unset" if default is None else f"`{_toml(default)}`"
            cells = (f"`{name}`", f"`{variable}`" if variable else "in the file only", shown, _meaning(field))
            parts.append(f"| {' | '.join(cells)} |\n")
    return "".join(parts)


def example_file() -> str:
    """Return the content of assay.example.toml: comments only.

    Uncommented, it is a valid file of defaults.
    """
    parts = [_EXAMPLE]
    for section, model in _sections():
        described = [f"# {line}".rstrip() for line in str(getdoc(model)).splitlines()]
        parts.append("\n".join(["", *described, f"[{section}]", ""]))
        for name, field in model.model_fields.items():
            default = _value(field)
            if isinstance(default, dict):  # a separate table, which must follow the section's plain settings in TOML
                continue
            unset = "" if default is not None else " Unset by default; for instance:"
            parts.append(
                f"# {_meaning(field)}{unset}\n#{name} = {_toml(_example(field) if default is None else default)}\n"
            )
        for name, field in model.model_fields.items():
            if isinstance(_value(field), dict):
                lines = "".join(f"#{_toml(key)} = {_toml(value)}\n" for key, value in _example(field).items())
                parts.append(f"# {_meaning(field)} For instance:\n#[{section}.{name}]\n{lines}")
    return "".join(parts)


def _sections() -> Iterator[tuple[str, type[Section]]]:
    for section, field in Settings.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, Section)
        yield section, field.annotation


def _value(field: FieldInfo) -> Any:
    default = field.get_default(call_default_factory=True, validated_data={})
    return default.get_secret_value() if isinstance(default, SecretStr) else default


def _example(field: FieldInfo) -> Any:
    assert field.examples, "a setting without a default needs an example for assay.example.toml"
    return field.examples[0]


def _meaning(field: FieldInfo) -> str:
    assert field.description, "every setting needs a description"
    return field.description


def _toml(value: Any) -> str:
    """Format a plain value as TOML.

    Strings, numbers and booleans are as in JSON; the page uses the same form.
    """
    return (
        str(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else orjson.dumps(value, default=str).decode()  # a path is text
    )
