"""An insert whose commit fails, or whose store dies at its commit, is stored when it is sent again.

The engine moves a part into place by renaming its directory. Whatever it keeps to recognise a repeated insert, it must not take a part that
never came into place for one that did.
"""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from assay_runtime.store import INSERT_SETTINGS, Client, connect
from tests.support import system_calls
from tests.support.sample_rows import Json, answer, candidate, failure, feedback, lines, score
from tests.support.store import ROLLUP_REFRESHES, StoreServer

pytestmark = [
    pytest.mark.skipif(bool(system_calls.missing()), reason=system_calls.missing()),
    pytest.mark.xdist_group("store_commit"),
]

RENAMES = "rename,renameat,renameat2"
ROWS: dict[str, Callable[..., Json]] = {
    "candidates": candidate,
    "answers": answer,
    "feedback": feedback,
    "capture_failures": failure,
    "scores": lambda _, **fields: score(**fields),
}


@pytest.fixture(scope="module")
def server(migrated: StoreServer) -> StoreServer:
    with connect(migrated.settings().store) as owner:  # only inserts rename; rollups and merges would take the fault
        for view in ROLLUP_REFRESHES:
            owner.command(f"SYSTEM STOP VIEW assay_base.{view}")
    return migrated


@pytest.fixture
def writer(server: StoreServer) -> Iterator[Client]:
    with connect(server.settings("writer").store, database="assay_base") as client:
        yield client


@pytest.mark.parametrize("fault", ["error=ENOSPC", "error=EIO", "signal=SIGKILL"])
def test_an_insert_whose_commit_fails_is_stored_when_it_is_sent_again(
    server: StoreServer, writer: Client, fault: str
) -> None:
    for table in ROWS:
        for token in (None, "token"):  # as now, and as a writer of version 0.1
            assert stored_when_sent_again(server, writer, table, fault, token) == 50, (table, token)


def stored_when_sent_again(server: StoreServer, writer: Client, table: str, fault: str, token: str | None) -> int:
    """How many rows of 50 are there after an insert that failed at its commit, and the same insert once more."""
    project = f"{token}-{fault.partition('=')[2]}"
    rows = [ROWS[table](number, project=project) for number in range(50)]

    def insert() -> None:
        more = {"insert_deduplication_token": f"{table}-{project}"} if token else {}
        summary = writer.raw_insert(
            f"assay_base.{table}", insert_block=lines(rows), fmt="JSONEachRow", settings=INSERT_SETTINGS | more
        )
        assert summary.written_rows == 50

    with system_calls.broken(server.pid, RENAMES, f"{fault}:when=1"), contextlib.suppress(Exception):
        insert()
        pytest.fail("the fault did not hit the insert")
    if fault.startswith("signal"):
        server.kill()
        server.start()

    insert()

    with connect(server.settings().store) as owner:
        return int(owner.query(f"SELECT count() FROM {table} WHERE project = '{project}'").result_rows[0][0])
