"""docker-compose.yml and its TLS overlay, read as Compose reads them: interpolated, merged."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
BASE = ROOT / "docker-compose.yml"
TLS = ROOT / "deploy/docker/tls.yml"
OVERRIDE = ROOT / "deploy/docker/override.example.yml"

_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>[A-Z_]+):-(?P<default>[^}]*)\}|(?P<bad>.))")


class _Loader(yaml.CSafeLoader):  # the one in Python takes ten times as long
    """YAML with Compose's `!override`, which replaces a value of the file before instead of adding to it."""


class Override(list[Any]):
    """A list under `!override`."""


def _override(loader: _Loader, node: yaml.SequenceNode) -> Override:
    return Override(loader.construct_sequence(node, deep=True))


_Loader.add_constructor("!override", _override)


def load(path: Path) -> dict[str, Any]:
    """One file, with every variable at its default."""
    document = yaml.load(path.read_text(), _Loader)  # noqa: S506  # a SafeLoader
    assert isinstance(document, dict)
    interpolated = _interpolated(document)
    assert isinstance(interpolated, dict)
    return interpolated


def merged(*paths: Path) -> dict[str, Any]:
    """Several files, later ones over earlier ones by Compose's rules: mappings merge, lists add up, commands are replaced."""
    whole: dict[str, Any] = {}
    for path in paths:
        whole = _over(whole, load(path), "")
    return whole


def variables(path: Path) -> dict[str, str]:
    """The variables a file interpolates and their defaults. One without a default is an error."""
    found: dict[str, str] = {}
    for match in _VARIABLE.finditer(_without_comments(path)):
        assert not match["bad"], f"{path.name}: {match[0]}{match.string[match.end() : match.end() + 30]} has no default"
        if match["name"]:
            assert found.setdefault(match["name"], match["default"]) == match["default"], match["name"]
    return found


def _without_comments(path: Path) -> str:
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))


def _interpolated(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: "$" if match["name"] is None else match["default"], value)
    if isinstance(value, Override):
        return Override(map(_interpolated, value))
    if isinstance(value, list):
        return [_interpolated(each) for each in value]
    if isinstance(value, dict):
        return {key: _interpolated(each) for key, each in value.items()}
    return value


def _over(below: Any, above: Any, key: str) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {name: _over(below[name], each, name) if name in below else each for name, each in above.items()}
    replaced = isinstance(above, Override) or key in {"command", "entrypoint", "test"}
    if isinstance(below, list) and isinstance(above, list) and not replaced:
        return [*below, *above]
    return above
