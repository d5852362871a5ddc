"""A console on a store with rows, an empty one, and a browser."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay_runtime.store import connect
from tests.programs import needed
from tests.support.browser import chromium
from tests.support.console import Console, running_console
from tests.support.console_rows import Filled, fill
from tests.support.store import StoreServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass(frozen=True)
class Shop:
    """A console on a store with rows."""

    console: Console
    store: StoreServer
    rows: Filled


@pytest.fixture(scope="module")
def shop(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with StoreServer(tmp_path_factory.mktemp("store"), tables=tables) as store:
        with connect(store.settings().store) as owner:
            rows = fill(owner)
        with running_console(tmp_path_factory.mktemp("console"), store) as console:
            yield Shop(console, store, rows)


@pytest.fixture(scope="module")
def empty(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(tmp_path_factory.mktemp("console"), migrated) as console:
        yield console


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium(needed("chromium")) as running:
        yield running
