"""Take pictures of the console, from a store with made-up rows: `python -m tests.console.pictures [--every | --keep] [FOLDER]`.

Without an option: the pictures of the docs. `--every`: each page at three widths, light and dark, in a folder for each state: with
rows (full), without any (empty), after the store went away (away) and if it was never there (never). They are to look at, and are not kept.
`--keep`: those of /patterns and of some pages, with the documents that these show, which `test_console_pictures.py` compares with.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from assay_console.pages import PAGES
from assay_console.reads import ROLLUP_S
from assay_runtime.migrate import migrate
from assay_runtime.store import connect
from tests.console import kept_pages, kept_pictures
from tests.console.kept_pictures import SCHEMES, WIDTHS
from tests.programs import found
from tests.support.browser import chromium, window
from tests.support.console import Console, running_console
from tests.support.console_rows import Filled, fill, path_of
from tests.support.store import StoreServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
EVERY = Path("build/pictures")


def shown(rows: Filled) -> dict[str, str]:
    """Return the address of each picture's page."""
    return {
        "console-overview": "/",
        "console-events": "/events?kind=answer&project=shop&t=7d",
        "console-event": f"/e/{rows.answer}",
        "console-quality": "/quality?project=shop&t=30d",
        "console-alert": f"/alerts/{rows.alert}",
        "console-label": "/label?project=shop",
    }


def take_docs(browser: "Browser", console: Console, rows: Filled, folder: Path) -> None:
    """Take the pictures of the docs."""
    for name, address in shown(rows).items():
        with window(browser, console) as opened:
            opened.open(address).screenshot(path=folder / f"{name}.png")


def take_every(browser: "Browser", console: Console, rows: Filled, folder: Path) -> None:
    """Take each page at each width, light and dark, all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        for scheme in SCHEMES:
            with window(browser, console, width=width, dark=scheme == "dark") as opened:
                for page in PAGES:
                    file = folder / f"{page.name}-{width}-{scheme}.png"
                    opened.open(path_of(page.name, rows)).screenshot(path=file, full_page=True)


def take_without_rows(browser: "Browser", rows: Filled, folder: Path, scratch: Path) -> None:
    """Take each page on a store without rows, and on one that this console never read."""
    with StoreServer(scratch / "empty") as store:
        migrate(store.settings())
        for state in ("empty", "never"):
            own = scratch / f"console of {state}"
            own.mkdir()
            with running_console(own, store) as console:
                if state == "never":
                    _kill(store)
                take_every(browser, console, rows, folder / state)


def _kill(store: StoreServer) -> None:
    """Kill the store, and wait until pages that may show what they kept ask it again."""
    store.kill()
    time.sleep(ROLLUP_S)


def keep(browser: "Browser", console: Console, rows: Filled, folder: Path) -> None:
    """Keep the pictures of /patterns, with the browser, its fonts and the places of blocks, and those of pages."""
    known: dict[str, object] = {}
    by_width: dict[str, object] = {}
    for width in WIDTHS:
        for scheme in SCHEMES:
            with window(browser, console, width=width, dark=scheme == "dark") as opened:
                page = opened.open("/patterns")
                (folder / kept_pictures.file_of(width, scheme).name).write_bytes(kept_pictures.shown(page).png)
                known = dict(kept_pictures.fingerprint(browser, page))
                by_width[str(width)] = kept_pictures.places(page)
    kept_pages.keep(kept_pages.taken(console, rows), folder)
    for name in kept_pages.NAMES:
        with window(browser, console) as opened:
            page = kept_pages.opened(opened, name, folder)
            (folder / kept_pages.file_of(name).name).write_bytes(kept_pictures.shown(page).png)
    (folder / "kept.json").write_text(json.dumps(known | {"places": by_width}, indent=1) + "\n")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.console.pictures", description=__doc__)
    parser.add_argument("--every", action="store_true", help="each page at three widths, light and dark")
    parser.add_argument("--keep", action="store_true", help="the pictures that a test compares with")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="where to; default: docs/pictures, build/pictures, tests/console/kept"
    )
    asked = parser.parse_args()
    folder: Path = asked.folder or (EVERY if asked.every else kept_pictures.FOLDER if asked.keep else DOCS)
    path = found("chromium")
    if path is None:
        sys.stderr.write("needs chromium (Debian: chromium)\n")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, StoreServer(Path(scratch) / "store") as store:
        migrate(store.settings())
        with connect(store.settings().store) as owner:
            rows = fill(owner)
        (Path(scratch) / "console").mkdir()
        with running_console(Path(scratch) / "console", store) as console, chromium(path) as browser:
            if asked.every:
                take_every(browser, console, rows, folder / "full")
                _kill(store)
                take_every(browser, console, rows, folder / "away")
                take_without_rows(browser, rows, folder, Path(scratch))
            elif asked.keep:
                keep(browser, console, rows, folder)
            else:
                take_docs(browser, console, rows, folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
