"""The query `failures` counts each lost event once: not once a service, and not once for entries of several shards."""

from uuid import uuid4

from assay_operations.failures import failures
from assay_runtime.store import connect, insert_json_rows
from tests.support.sample_rows import failure, lines
from tests.support.store import StoreServer


def test_unreadable_entries_with_equal_ids_in_several_shards_and_streams_all_count(empty_store: StoreServer) -> None:
    event_id = str(uuid4())
    rows = [
        *(failure(7, stage=stage) for stage in ("writer", "writer", "judge", "judge")),  # two shards, two services
        failure(7, stage="scrubber"),  # another stream
        *(failure(8, stage=stage, event_id=event_id) for stage in ("writer", "judge")),
        *(failure(entry_id=None, stage="writer", reason="db_down") for _ in range(2)),
    ]
    with connect(empty_store.settings("writer").store) as writer:
        insert_json_rows(writer, "assay_base.capture_failures", lines(rows), len(rows))
    with connect(empty_store.settings("console").store) as client:
        found = failures(client, hours=1)
    assert {(each.stage, each.lost) for each in found.groups if each.lost} == {("writer", 3), ("scrubber", 1)}
    assert (found.lost, found.incidents) == (4, 2)
