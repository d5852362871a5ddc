"""Passes of the auditor: append new rows to the log, and sign a checkpoint if one is due.

Nothing waits for the auditor. While it is away, or a problem stops it, the log has a gap at its end, which the next pass closes.
"""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from assay_auditor.keys import KeyFileError, Lock, load_or_create, next_signer
from assay_auditor.log import Log, LogDamagedError, LogMovedError
from assay_auditor.notes import Signed
from assay_auditor.rows import Source
from assay_auditor.sources import Sources
from assay_runtime import metrics
from assay_runtime.store import Client, connect, describe
from assay_schema.settings import Settings

logger = logging.getLogger(__name__)

#: Seconds between looks for sources that were stored after the log had passed them.
LATE_EVERY_S = 600.0
#: Seconds after which a pass reads no further batch of events, so that losses, records and a stop do not wait for a backlog.
PASS_S = 3.0


class Auditor:
    """Writes the log of one directory. Synchronous: run its passes one after another, in a thread."""

    def __init__(self, settings: Settings) -> None:
        own = settings.auditor
        self.signer, self._secret = load_or_create(own.directory, own.origin)
        self._settings, self._directory = settings, Path(own.directory)
        self._lock = Lock(self._directory)
        self._client: Client | None = None
        self._log: Log | None = None
        self._sources: Sources | None = None
        self._signed_at = self._late_at = 0.0
        #: The places that the log had reached at the last look for late sources, of each kind.
        self._looked: dict[str, int] = {}
        self._stands_by = False
        #: Why the log is not written; empty while it is.
        self.problem = ""
        #: The newest signed checkpoint, for the anchors; None while this auditor does not write the log.
        self.newest: Signed | None = None

    def step(self) -> bool:
        """Do one pass. True if there may be more to do at once.

        Never raises for problems that an operator can fix: see `problem`.
        """
        try:
            if not self._lock.held():
                self._stand_by("another auditor of this directory writes the log")
                return False
            self._stands_by = False
            log, sources = self._resumed()
            more = self._append(log, sources)
            if log.tree.size and (new := next_signer(self._directory, log.origin)):
                log.rotate(new)
                self.signer = new
                logger.warning("the key of the log was replaced: publish the line of assay audit key")
            self._sign(log, more=more)
        except (LogDamagedError, LogMovedError, KeyFileError) as error:
            self._stop(str(error))
        except Exception as error:  # noqa: BLE001 - the store, the driver, the disk; the next pass starts from what is stored
            name, detail = describe(error)
            self._stop(f"{name}{': ' + detail if detail else ''}")
        else:
            self.problem, self.newest = "", log.newest
            metrics.AUDIT_WRITES.set(1)
            metrics.AUDIT_LEAVES.set(log.tree.size)
            metrics.AUDIT_CHECKPOINT_LEAVES.set(log.checkpoint_size)
            metrics.AUDIT_CHECKPOINT_SECONDS.set(log.covered_at)
            return more
        return False

    def close(self) -> None:
        """Sign what was appended, and free the lock."""
        if self._log is not None:
            try:
                self._log.sign()
            except Exception as error:  # noqa: BLE001 - as above: the next start signs
                logger.warning("the last checkpoint is not signed", extra={"error_class": type(error).__name__})
        self._disconnect()
        self._lock.release()

    def _resumed(self) -> tuple[Log, Sources]:
        if self._log is None or self._sources is None:
            self._disconnect()
            store, own = self._settings.store, self._settings.auditor
            # Another auditor of this directory may have replaced the key.
            self.signer, self._secret = load_or_create(own.directory, own.origin)
            self._client = connect(store)
            sources = Sources(self._client, own.origin)
            log = Log(self._client, store.base_database, self.signer, self._secret, self._directory)
            log.resume(sources)
            self._log, self._sources = log, sources
            logger.info("the log has %d leaves", log.tree.size)
        return self._log, self._sources

    def _append(self, log: Log, sources: Sources) -> bool:
        most = self._settings.auditor.batch_rows
        # Before anything else is appended, which may move the places of the log far away from those of late sources.
        full = self._append_late(log, sources, most) if time.monotonic() >= self._late_at else False
        full |= self._append_events(log, sources, most)
        lost = sources.lost(log.places.get("lost", 0), most)
        log.append(lost)
        operations = sources.operations(log.places.get("operation", 0), most)
        log.append(operations)
        full |= max(len(lost), len(operations)) >= most
        return full

    def _append_late(self, log: Log, sources: Sources, most: int) -> bool:
        """Append sources that were stored after the log had passed them. True if there may be more."""
        self._late_at = time.monotonic() + LATE_EVERY_S  # also if the scan fails: it would be repeated in each pass
        # Kept until all are found: other sources may move the places of the log meanwhile.
        self._looked = log.places | self._looked
        reached, full = dict(log.places), False
        for kind in sorted(reached):
            late = sources.late(kind, reached[kind], most, self._looked[kind])
            log.append(late)
            if late:
                logger.warning("%d sources (%s) were stored after the log had passed them", len(late), kind)
            full |= len(late) >= most
        if full:
            self._late_at = 0.0
        else:
            self._looked = reached
        return full

    def _append_events(self, log: Log, sources: Sources, most: int) -> bool:
        """Append the next events, for `PASS_S` at most. True if there may be more."""
        upto, ends = sources.watermark(), time.monotonic() + PASS_S
        full = False

        def batches() -> Iterator[list[Source]]:
            nonlocal full
            after = log.places.get("event", 0)
            while found := sources.events(after, upto, most):
                full, after = len(found) >= most, found[-1].place
                yield found
                if not full or time.monotonic() >= ends:
                    break

        log.append_all(batches(), lambda: self._sign(log, more=True))
        return full

    def _sign(self, log: Log, *, more: bool) -> None:
        own = self._settings.auditor
        grown = log.tree.size - log.checkpoint_size
        due = time.monotonic() - self._signed_at >= own.checkpoint_s or not self._signed_at
        if (grown >= own.checkpoint_leaves or (due and not more) or not grown) and log.sign():
            self._signed_at = time.monotonic()

    def _stop(self, problem: str) -> None:
        if problem != self.problem:
            logger.error("the audit log is not written: %s", problem)
        self.problem = problem
        self._disconnect()
        metrics.AUDIT_WRITES.set(0)

    def _stand_by(self, why: str) -> None:
        if not self._stands_by:
            logger.info("standing by: %s", why)
        self._stands_by = True
        self._disconnect()
        metrics.AUDIT_WRITES.set(0)

    def _disconnect(self) -> None:
        self._log = self._sources = self.newest = None
        if self._client is not None:
            self._client.close()
            self._client = None
