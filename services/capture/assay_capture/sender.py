"""A thread that does nothing but talk to Redis, so that a hung network or name server never holds up queue, spool or exit."""

from collections.abc import Callable

from assay_capture.entry_queue import Entry
from assay_capture.link import Link, Outcome
from assay_capture.native import SimpleQueue, start_thread, wait_until


class Sender:
    """One batch at a time: `submit` returns at once, the outcome arrives by `deliver`."""

    def __init__(self, link: Link, deliver: Callable[[Outcome], None]) -> None:
        self._link = link
        self._deliver = deliver
        self._jobs: SimpleQueue[tuple[list[Entry], tuple[int, ...]] | None] = SimpleQueue()
        self._running = False

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if the system has none left."""
        self._running = True
        try:
            start_thread(self._run)
        except RuntimeError:
            self._running = False
            raise

    def submit(self, entries: list[Entry], measure: tuple[int, ...] = ()) -> None:
        """Send entries and measure shards. Only after the last outcome has arrived."""
        self._jobs.put((entries, measure))

    def stop(self, timeout: float) -> None:
        """Let the thread end after its batch and wait for that, in seconds."""
        self._jobs.put(None)
        wait_until(lambda: not self._running, timeout)

    def abandon(self) -> None:
        """In a forked child, where the thread does not run: close this process's copy of the connection."""
        self._link.close()

    def _run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                entries, measure = job
                try:
                    outcome = self._link.send(entries, measure)
                except Exception as error:  # noqa: BLE001  (whatever it is, the batch must come back)
                    self._link.close()
                    outcome = Outcome(entries, "down", type(error).__name__)
                self._deliver(outcome)
            self._link.close()
        finally:
            self._running = False
