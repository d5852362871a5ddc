"""The engine and a store with all tables, once for all tests of this package."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.embedded import Embedded
from tests.support.store import StoreServer


@pytest.fixture(scope="session")
def embedded() -> Iterator[Embedded]:
    with Embedded() as running:
        yield running


@pytest.fixture(scope="session")
def migrated(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with StoreServer(tmp_path_factory.mktemp("security"), tables=tables) as server:
        yield server
