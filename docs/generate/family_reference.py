"""Generate `docs/families.md` from the registry: every family, by category.

`python -m docs.generate.family_reference` prints it; `--write` writes it to docs/, `--check` exits 1 if that file is
outdated.
"""

import sys
from pathlib import Path

from assay_scrubber.family import Family
from assay_scrubber.policy import FLOOR, RULES_VERSION
from assay_scrubber.registry import FAMILIES
from assay_scrubber.taxonomy import Category
from docs.generate.keep import keep

DOCUMENT = Path(__file__).parents[2] / "docs" / "families.md"

_INTRODUCTION = f"""# Families of personal data

<!-- Made by `make docs` from the registry of families: change it there. -->

[Scrubbing](scrubbing.md) searches for {len(FAMILIES)} families (version {RULES_VERSION} of the rules). Every family belongs to one
category. [Policies](policy.md) use these names of families and categories. All examples are placeholders.
"""


def document() -> str:
    """Return the text of docs/families.md."""
    parts = [_INTRODUCTION]
    empty = []
    for category in sorted(Category):
        members = [family for family in FAMILIES.values() if family.category is category]
        if not members:
            empty.append(f"`{category}`")
            continue
        parts.append(f"## {category}\n")
        if category in FLOOR:
            parts.append("No policy can allow these families.\n")
        parts.append("| family | description | redacted | kept |\n|---|---|---|---|")
        parts += [_row(family) for family in members]
        parts.append("")
    if empty:
        parts.append(
            f"Categories without a family: {', '.join(empty)}. A policy's own patterns can find them in text; "
            "database columns are classified by name."
        )
    order = ", ".join(f"`{name}`" for name in FAMILIES)
    parts.append(f"\nIf several families match the same text, the first in this list names it: {order}.")
    return "\n".join(parts) + "\n"


def _row(family: Family) -> str:
    cells = (f"`{family.name}`", family.description, _examples(family.examples), _examples(family.counterexamples))
    return f"| {' | '.join(cells)} |"


def _examples(texts: tuple[str, ...]) -> str:
    return "<br>".join(f"`{_cell(text)}`" for text in texts)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


def main(arguments: list[str]) -> int:
    """Run the command."""
    return keep({DOCUMENT: document()}, arguments, "python -m docs.generate.family_reference")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
