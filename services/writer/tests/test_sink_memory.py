"""What an outage costs in memory."""

import gc
import logging
from collections.abc import Iterator

import pytest

from assay_runtime.entries import Entry, SinkUnavailableError
from assay_schema.settings import StoreSettings
from assay_writer.batch import Batch, batches
from assay_writer.sink import Sink
from tests.support.ports import free_port


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Services run the garbage collector so rarely that an outage must not depend on it."""
    logging.disable()  # the test's own log keeps errors, and with them all they hold
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.usefixtures("no_collector")
def test_tries_of_a_batch_during_an_outage_do_not_pile_up_in_memory() -> None:
    sink = Sink(StoreSettings.model_validate({"url": f"http://127.0.0.1:{free_port()}", "timeout_s": 1}))
    entries = [Entry("1-1", b"{}")]
    for _ in range(5):
        with pytest.raises(SinkUnavailableError):
            sink.write(entries, *batches(entries, lambda data: ("candidates", data, "1:1")))
    alive = sum(
        type(thing) is Batch for thing in gc.get_objects()
    )  # not isinstance: other tests leave objects that lie about it
    assert alive <= 1
