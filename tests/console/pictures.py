"""Take the pictures of the console in the docs, from a store with made-up rows: `python -m tests.console.pictures [FOLDER]`.

Without a folder it writes docs/pictures.
"""

import sys
import tempfile
from pathlib import Path

from assay_runtime.migrate import migrate
from assay_runtime.store import connect
from tests.programs import found
from tests.support.browser import chromium, window
from tests.support.console import running_console
from tests.support.console_rows import Filled, fill
from tests.support.store import StoreServer

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


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


def main() -> int:
    """Run the command."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
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
            for name, address in shown(rows).items():
                with window(browser, console) as opened:
                    opened.open(address).screenshot(path=folder / f"{name}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
