"""The engine and a store with all tables, once for all tests of this package."""

from collections.abc import Iterator

import pytest

from assay_runtime.migrate import migrate
from tests.security.embedded import Embedded
from tests.store_server import StoreServer


@pytest.fixture(scope="session")
def embedded() -> Iterator[Embedded]:
    with Embedded() as running:
        yield running


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with StoreServer(tmp_path_factory.mktemp("security")) as server:
        migrate(server.settings())
        yield server
