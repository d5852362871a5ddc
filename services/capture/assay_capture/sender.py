"""A thread that only talks to the receiver, so a hung network or DNS server blocks nothing else."""

from collections.abc import Callable

from assay_capture.entry_queue import Entry
from assay_capture.native import SimpleQueue, start_thread, wait_until
from assay_capture.transport import Outcome, Transport


class Sender:
    """Sends one batch at a time: `submit` returns at once, and `deliver` receives the outcome."""

    def __init__(self, link: Transport, deliver: Callable[[Outcome], None]) -> None:
        self._link = link
        self._deliver = deliver
        self._jobs: SimpleQueue[tuple[list[Entry], tuple[int, ...]] | None] = SimpleQueue()
        self._running = False

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if the system has none available."""
        self._running = True
        try:
            start_thread(self._run)
        except RuntimeError:
            self._running = False
            raise

    def submit(self, entries: list[Entry], measure: tuple[int, ...] = ()) -> None:
        """Send entries and measure shards. Call only after the last outcome has arrived."""
        self._jobs.put((entries, measure))

    def stop(self, timeout: float) -> None:
        """Stop the thread after its batch, and wait up to `timeout` seconds for that."""
        self._jobs.put(None)
        wait_until(lambda: not self._running, timeout)

    def abandon(self) -> None:
        """Close the copy of the connection in a forked child, where the thread does not run."""
        self._link.close()

    def _run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                entries, measure = job
                try:
                    outcome = self._link.send(entries, measure)
                except Exception as error:  # noqa: BLE001  (after any error, the batch must come back)
                    self._link.close()
                    outcome = Outcome(entries, "down", type(error).__name__)
                self._deliver(outcome)
            self._link.close()
        finally:
            self._running = False
