"""Draw which package imports which, in `docs/architecture.md`, from the import graph of the source.

`python -m docs.generate.package_picture` prints the page; `--write` writes it, `--check` exits 1 if it is outdated.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp

from docs.generate.keep import keep

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "architecture.md"
BLOCK = re.compile(r"(<!-- packages: made by `make docs` -->\n).*?(<!-- end -->)", re.DOTALL)


def document() -> str:
    """Return docs/architecture.md with a current picture."""
    return BLOCK.sub(lambda match: f"{match[1]}{_picture()}{match[2]}", DOCUMENT.read_text("utf-8"))


#: Arrows that stay although a path of others shows them as well: the layers that every reader should see.
KEPT = frozenset({("assay_cli", "assay_operations")})


def reduced(imports: dict[str, set[str]], kept: frozenset[tuple[str, str]] = KEPT) -> Iterator[tuple[str, str]]:
    """Yield the arrows between packages, without those that a path of other arrows shows as well unless they are to be kept."""
    for package, targets in sorted(imports.items()):
        indirect = set[str]().union(*(_reached(imports, target) for target in targets))
        for target in sorted(targets):
            if target not in indirect or (package, target) in kept:
                yield package, target


def _reached(imports: dict[str, set[str]], package: str) -> set[str]:
    return set[str]().union(*({target} | _reached(imports, target) for target in imports[package]))


def _imports() -> dict[str, set[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    packages = contracts["root_packages"]
    graph = grimp.build_graph(*packages, cache_dir=None)
    found: dict[str, set[str]] = {package: set() for package in packages}
    for module in graph.modules:
        package = module.partition(".")[0]
        found[package] |= {name.partition(".")[0] for name in graph.find_modules_directly_imported_by(module)} - {
            package
        }
    return found


def _picture() -> str:
    arrows = "\n".join(f"  {package} --> {target}" for package, target in reduced(_imports()))
    return f"```mermaid\nflowchart TB\n{arrows}\n```\n"


def main(arguments: list[str]) -> int:
    """Run the command."""
    return keep({DOCUMENT: document()}, arguments, "python -m docs.generate.package_picture")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
