"""A console on a store with rows, an empty one, and windows of a browser."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import TypeAdapter

from assay_runtime.store import connect
from tests.programs import needed
from tests.support.browser import Window, chromium, window
from tests.support.console import Console, running_console
from tests.support.console_rows import Filled, fill
from tests.support.made_once import made_once
from tests.support.store import StoreServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass(frozen=True)
class Shop:
    """A console on a store with rows."""

    console: Console
    store: StoreServer
    rows: Filled


@dataclass(frozen=True)
class FilledTables:
    """The data of a store with rows, for other stores to begin with, and the ids of these rows."""

    data: Path
    rows: Filled


@pytest.fixture(scope="session")
def filled(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> FilledTables:
    def make(directory: Path) -> None:
        with StoreServer(directory, tables=tables) as store, connect(store.settings().store) as owner:
            rows = fill(owner)
        (directory / "rows.json").write_bytes(TypeAdapter(Filled).dump_json(rows))

    made = made_once(tmp_path_factory, "filled", make)
    return FilledTables(made / "data", TypeAdapter(Filled).validate_json((made / "rows.json").read_bytes()))


@pytest.fixture(scope="module")
def shop(filled: FilledTables, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with (
        StoreServer(tmp_path_factory.mktemp("store"), tables=filled.data) as store,
        running_console(tmp_path_factory.mktemp("console"), store) as console,
    ):
        yield Shop(console, store, filled.rows)


@pytest.fixture(scope="module")
def empty(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(tmp_path_factory.mktemp("console"), migrated) as console:
        yield console


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium(needed("chromium")) as running:
        yield running


@pytest.fixture(scope="module")
def shop_window(browser: "Browser", shop: Shop) -> Iterator[Window]:
    with window(browser, shop.console) as found:
        yield found


@pytest.fixture
def opened(shop_window: Window) -> Window:
    """A window of the shop that is as good as new."""
    shop_window.renew()
    return shop_window
