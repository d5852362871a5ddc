"""`docs/families.md` from the registry: every family, by category.

`python -m docs.generate.family_reference` prints it; `--write` puts it in docs/, `--check` exits 1 when that file is not current.
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

What [scrubbing](scrubbing.md) looks for: {len(FAMILIES)} families, version {RULES_VERSION} of the rules. Every family belongs to one
category, and [policies](policy.md) name families and categories as they are written here. All examples are placeholders.
"""


def document() -> str:
    """The text of docs/families.md."""
    parts = [_INTRODUCTION]
    empty = []
    for category in sorted(Category):
        members = [family for family in FAMILIES.values() if family.category is category]
        if not members:
            empty.append(f"`{category}`")
            continue
        parts.append(f"## {category}\n")
        if category in FLOOR:
            parts.append("No policy can allow these.\n")
        parts.append("| family | what it is | found | left alone |\n|---|---|---|---|")
        parts += [_row(family) for family in members]
        parts.append("")
    if empty:
        parts.append(
            f"No family finds {', '.join(empty)} in text: a policy's own patterns can, and columns of databases are told by their names."
        )
    order = ", ".join(f"`{name}`" for name in FAMILIES)
    parts.append(f"\nWhere several families claim the same text, the first of these names it: {order}.")
    return "\n".join(parts) + "\n"


def _row(family: Family) -> str:
    cells = (f"`{family.name}`", family.description, _examples(family.examples), _examples(family.counterexamples))
    return f"| {' | '.join(cells)} |"


def _examples(texts: tuple[str, ...]) -> str:
    return "<br>".join(f"`{_cell(text)}`" for text in texts)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


def main(arguments: list[str]) -> int:
    """The command."""
    return keep({DOCUMENT: document()}, arguments, "python -m docs.generate.family_reference")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
