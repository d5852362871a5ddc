"""A write that fails in the middle of an insert or a merge loses nothing, although the engine itself takes it for done.

The tracer makes every write to one file of the part fail. The path of that file is known beforehand: a part that is being made is called
`tmp_insert_` or `tmp_merge_`, and then the partition, its first and last block and its level.
"""

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError

from assay_runtime.store import connect
from tests.support import system_calls
from tests.support.store import StoreServer

pytestmark = [
    pytest.mark.skipif(bool(system_calls.missing()), reason=system_calls.missing()),
    pytest.mark.xdist_group("store_writes"),
]

WRITES = "write,writev,pwrite64"
#: Some are checked by their sizes, some by their contents, and some are not in the list of checksums.
FILES = ["data.bin", "data.cmrk4", "primary.cidx", "columns.txt", "count.txt", "checksums.txt"]
ROWS = "SELECT number + {first}, toString(number) FROM numbers(100)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with StoreServer(tmp_path_factory.mktemp("store")) as server:
        yield server


def ask(server: StoreServer, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as the owner. Returns the last one's rows."""
    with connect(server.settings().store, database="default") as owner:
        for statement in statements[:-1]:
            owner.command(statement)
        return [tuple(row) for row in owner.query(statements[-1]).result_rows]


def table_of_three_parts(server: StoreServer, name: str) -> Path:
    """A table that nothing merges by itself. Returns the directory of its parts."""
    ask(
        server,
        f"CREATE TABLE {name} (k UInt64, v String) ENGINE = ReplacingMergeTree ORDER BY k",
        f"SYSTEM STOP MERGES {name}",
        *(f"INSERT INTO {name} {ROWS.format(first=first)}" for first in (0, 100, 200)),
        "SELECT 1",
    )
    return Path(str(ask(server, f"SELECT data_paths[1] FROM system.tables WHERE name = '{name}'")[0][0]))


def started_again(server: StoreServer) -> None:
    """Wait until the store has ended by itself, and start it as its supervisor would."""
    assert server.ended() == 1
    server.start()


def rows_of(server: StoreServer, name: str) -> tuple[object, ...]:
    return ask(server, f"SELECT count(), uniqExact(k), sum(length(v)) FROM {name}")[0]


def metrics(server: StoreServer) -> str:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("file", FILES)
def test_a_merge_with_a_failed_write_gives_back_the_parts_that_it_replaced(server: StoreServer, file: str) -> None:
    name = f"merge_{file.replace('.', '_')}"
    place = table_of_three_parts(server, name)
    before = rows_of(server, name)

    with system_calls.broken(server.pid, WRITES, "error=ENOSPC", path=place / f"tmp_merge_all_1_3_1/{file}"):
        with pytest.raises(ClickHouseError):
            ask(server, f"SYSTEM START MERGES {name}", f"OPTIMIZE TABLE {name} FINAL", "SELECT 1")
        started_again(server)

    assert rows_of(server, name) == before == (300, 300, 570)
    assert ask(server, f"SELECT reason FROM system.detached_parts WHERE table = '{name}'") == [("broken-on-start",)]
    aside = ask(server, "SELECT count() FROM system.detached_parts WHERE startsWith(reason, 'broken')")[0][0]
    deadline = time.monotonic() + 60
    while f"assay_store_broken_parts {aside}.0" not in metrics(server):
        assert time.monotonic() < deadline, metrics(server)
        time.sleep(0.05)


@pytest.mark.parametrize("file", FILES)
def test_an_insert_with_a_failed_write_is_refused_and_stored_when_it_is_sent_again(
    server: StoreServer, file: str
) -> None:
    name = f"insert_{file.replace('.', '_')}"
    place = table_of_three_parts(server, name)
    insert = f"INSERT INTO {name} {ROWS.format(first=300)}"

    with system_calls.broken(server.pid, WRITES, "error=EIO", path=place / f"tmp_insert_all_4_4_0/{file}"):
        with pytest.raises(ClickHouseError):
            ask(server, insert, "SELECT 1")
        started_again(server)
    assert rows_of(server, name) == (300, 300, 570)
    ask(server, insert, "SELECT 1")

    assert rows_of(server, name) == (400, 400, 760)


@pytest.mark.parametrize("statement", ["ALTER TABLE {} MODIFY COMMENT 'b'", "ALTER TABLE {} DELETE WHERE k < 50"])
def test_a_change_of_a_table_whose_write_failed_is_undone(server: StoreServer, statement: str) -> None:
    name = f"changed_{statement.split()[3].lower()}"
    place = table_of_three_parts(server, name)
    file = place / "tmp_mutation_4.txt" if "DELETE" in statement else definition(server, name)

    with system_calls.broken(server.pid, WRITES, "error=ENOSPC", path=file):
        with pytest.raises(ClickHouseError):
            ask(server, statement.format(name), "SELECT 1")
        started_again(server)

    assert rows_of(server, name) == (300, 300, 570)
    assert ask(server, f"SELECT comment FROM system.tables WHERE name = '{name}'") == [("",)]


def test_a_new_table_whose_write_failed_is_not_there(server: StoreServer) -> None:
    table_of_three_parts(server, "neighbour")
    file = definition(server, "neighbour").with_name("made.sql.tmp")

    with system_calls.broken(server.pid, WRITES, "error=ENOSPC", path=file):
        with pytest.raises(ClickHouseError):
            ask(server, "CREATE TABLE made (k UInt64) ENGINE = MergeTree ORDER BY k", "SELECT 1")
        started_again(server)

    assert rows_of(server, "neighbour") == (300, 300, 570)
    assert ask(server, "EXISTS TABLE made") == [(0,)]
    ask(server, "CREATE TABLE made (k UInt64) ENGINE = MergeTree ORDER BY k", "SELECT 1")


def definition(server: StoreServer, name: str) -> Path:
    """The file that the engine writes a table's definition into before it moves it into place."""
    (path,) = (server.directory / "data/engine").glob(f"store/*/*/{name}.sql")
    return path.with_name(f"{name}.sql.tmp")
