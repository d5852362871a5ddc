"""Generate the JSON Schemas, reference pages and example settings file from models and settings.

    python -m docs.generate.schemas            write them
    python -m docs.generate.schemas --check    write nothing; exit 1 and name what is stale

Needs a checkout, since the pages are outside the package. This and reading examples is all the I/O in the package.
"""

import argparse
import sys
from pathlib import Path

import orjson

from assay_schema.published import FORMATS
from docs.generate.event_reference import events_page
from docs.generate.settings_reference import example_file, settings_page

COMMAND = "python -m docs.generate.schemas"
ROOT = Path(__file__).parents[2]
SCHEMAS = "shared/schema/assay_schema/schemas"


def documents() -> dict[str, bytes]:
    """Return every generated file: its path from the root of the checkout, and its content."""
    made = {f"{SCHEMAS}/{each.file_name}": _stable(each.schema()) for each in FORMATS}
    made["docs/events.md"] = events_page().encode()
    made["docs/settings.md"] = settings_page().encode()
    made["assay.example.toml"] = example_file().encode()
    return made


def stale(root: Path) -> list[str]:
    """List the generated files under `root` that are missing or outdated, and schemas without a model."""
    made = documents()
    differing = [path for path, content in made.items() if not _same(root / path, content)]
    orphans = [f"{SCHEMAS}/{file.name}" for file in (root / SCHEMAS).glob("*.json")]
    return differing + [path for path in sorted(orphans) if path not in made]


def main(arguments: list[str] | None = None, *, root: Path = ROOT) -> int:
    """Run the command.

    Exit code 0: all written or up to date; 1: `--check` found stale files; 2: no checkout.
    """
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Write the JSON Schemas, reference pages and example settings."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that are stale")
    check = parser.parse_args(arguments).check
    if not (root / SCHEMAS).is_dir():
        print(f"{COMMAND} works only in a checkout of the project: {SCHEMAS} is missing", file=sys.stderr)
        return 2
    outdated = stale(root)
    if check:
        for path in outdated:
            print(f"{path} is stale; run: {COMMAND}", file=sys.stderr)
        return 1 if outdated else 0
    made = documents()
    for path in outdated:
        if path in made:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(made[path])
            print(f"wrote {path}")
        else:
            (root / path).unlink()
            print(f"removed {path}")
    return 0


def _same(file: Path, content: bytes) -> bool:
    return file.is_file() and file.read_bytes() == content


def _stable(schema: object) -> bytes:
    """Return the same bytes for the same schema: two spaces, keys in the models' order, a final newline."""
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    sys.exit(main())
