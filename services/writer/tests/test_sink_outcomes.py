"""What becomes of entries that are no row of this version."""

from assay_runtime.entries import Entry
from assay_schema.settings import StoreSettings
from assay_writer.batch import batches
from assay_writer.rows import event_row
from assay_writer.sink import Sink

ENVELOPE = b'{"schema_version":1,"id":1,"event_id":"019aa5d1-0000-7000-8000-000000000001","payload":{},"kind":'


def test_an_event_of_a_kind_that_only_a_newer_version_stores_is_kept_and_a_broken_one_is_not() -> None:
    entries = [Entry("1-1", ENVELOPE + b'"from_next_year"}'), Entry("1-2", b"broken")]
    parts, poison = batches(entries, event_row)
    newer, broken = Sink(StoreSettings()).write(entries, parts, poison)
    assert newer.failure is not None
    assert broken.failure is not None
    assert (newer.keep, broken.keep) == (True, False)
