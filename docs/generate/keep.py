"""Write generated documents, or report which are outdated."""

import sys
from collections.abc import Mapping
from pathlib import Path


def keep(documents: Mapping[Path, str], arguments: list[str], command: str) -> int:
    """Run a generator's command: `--write`, `--check`, or print.

    Exit code 1 if `--check` found an outdated document, 2 for other arguments.
    """
    if arguments == ["--check"]:
        stale = [path for path, text in documents.items() if not path.is_file() or path.read_text("utf-8") != text]
        for path in stale:
            sys.stderr.write(f"{path} is outdated: run {command} --write, or make docs\n")
        return 1 if stale else 0
    if arguments not in ([], ["--write"]):
        sys.stderr.write(f"usage: {command} [--write | --check]\n")
        return 2
    for path, text in documents.items():
        if arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
    return 0
