"""Submit the newest checkpoint to every anchor, and keep what they signed.

Runs apart from the passes of the auditor: an anchor that is slow or away holds nothing back. Of the checkpoints that were signed
meanwhile it gets only the newest, which covers the others.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from assay_auditor.anchors.anchor import Anchor, Anchored, AnchorError
from assay_auditor.anchors.proofs import stored_proof
from assay_auditor.notes import Signed
from assay_runtime import metrics
from assay_runtime.store import Client, connect, describe, insert_json_rows
from assay_schema.settings import StoreSettings

log = logging.getLogger(__name__)

#: Seconds to the first repetition after a failure; each one doubles them, up to the second number.
RETRY_S, LONGEST_RETRY_S = 5.0, 600.0


@dataclass
class _State:
    """The state of one anchor."""

    #: Size of the newest checkpoint that it has, and the Unix time at which it took one; 0 if none is known.
    size: int = 0
    at: float = 0.0
    #: Why it did not take the newest one; empty if it did.
    problem: str = ""
    contradicts: bool = False
    #: Size that the store names for it, and why this cannot be; empty if it can.
    stored: int = 0
    excess: str = ""
    #: When to try next, and the pause after the next failure, by the monotonic clock.
    due: float = 0.0
    pause_s: float = RETRY_S


class Anchoring:
    """The anchors of one log. Synchronous: run its steps one after another, in a separate thread."""

    def __init__(self, origin: str, store: StoreSettings, anchors: Sequence[Anchor]) -> None:
        self._origin, self._store, self._anchors = origin, store, anchors
        self._client: Client | None = None
        self._states: dict[str, _State] = {}

    @property
    def problems(self) -> list[str]:
        """Why anchors lack the newest checkpoint, and what the store names that they cannot have."""
        return [each for state in self._states.values() for each in (state.problem, state.excess) if each]

    def step(self, signed: Signed | None) -> None:
        """Submit a checkpoint where it is due. Never raises for what an operator can fix: see `problems`."""
        if signed is None or not signed.checkpoint.size or not self._anchors:
            return
        try:
            if not self._states:
                self._states = self._stored()
        except Exception as error:  # noqa: BLE001 - the store or the driver; the next step asks again
            self._disconnect(error)
            return
        for anchor in self._anchors:
            state = self._states[anchor.name]
            _compare(anchor, state, signed.checkpoint.size)
            if state.size != signed.checkpoint.size and time.monotonic() >= state.due:
                self._submit(anchor, state, signed)
            metrics.AUDIT_ANCHOR_LEAVES.labels(anchor.name).set(state.size)
            metrics.AUDIT_ANCHOR_SECONDS.labels(anchor.name).set(state.at)
            metrics.AUDIT_ANCHOR_UP.labels(anchor.name).set(not state.problem)
            metrics.AUDIT_ANCHOR_CONTRADICTS.labels(anchor.name).set(state.contradicts or bool(state.excess))

    def submit(self, anchor: Anchor, signed: Signed, known: int) -> Anchored:
        """Submit a checkpoint to one anchor now, and keep what it signed.

        Raises `AnchorError`, or the driver's errors.
        """
        client = self._connected()
        anchored = anchor.submit(
            signed, lambda first: stored_proof(client, self._origin, first, signed.checkpoint), known
        )
        row = {
            "log": self._origin,
            "size": anchored.size,
            "anchor": anchor.name,
            "kind": anchor.kind,
            "note": anchored.note,
            "token": anchored.token,
            "anchored_at": anchored.at.strftime("%Y-%m-%d %H:%M:%S.%f"),
        }
        insert_json_rows(client, f"{self._store.base_database}.audit_anchors", orjson.dumps(row), 1)
        return anchored

    def known(self, anchor: Anchor) -> int:
        """Return the size of the newest checkpoint that an anchor has, by the store.

        Raises the driver's errors.
        """
        return self._stored()[anchor.name].size

    def close(self) -> None:
        """Close the connection to the store."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _submit(self, anchor: Anchor, state: _State, signed: Signed) -> None:
        try:
            anchored = self.submit(anchor, signed, state.size)
        except AnchorError as error:
            self._failed(state, str(error), contradicts=error.contradicts)
        except Exception as error:  # noqa: BLE001 - the store or the driver
            self._disconnect(error)
            self._failed(
                state, f"the store does not take what {anchor.name} signed ({': '.join(filter(None, describe(error)))})"
            )
        else:
            if state.problem:
                log.info("the anchor %s has the newest checkpoint again", anchor.name)
            state.size, state.at = anchored.size, time.time()
            state.problem, state.contradicts, state.pause_s = "", False, RETRY_S
            state.due = time.monotonic() + anchor.every_s

    def _failed(self, state: _State, problem: str, *, contradicts: bool = False) -> None:
        if problem != state.problem:
            log.log(logging.ERROR if contradicts else logging.WARNING, "a checkpoint is not anchored: %s", problem)
        state.problem, state.contradicts = problem, contradicts
        state.due = time.monotonic() + state.pause_s
        state.pause_s = min(2 * state.pause_s, LONGEST_RETRY_S)

    def _stored(self) -> dict[str, _State]:
        """Return what the store says that each anchor has."""
        rows = (
            self._connected()
            .query(
                "SELECT anchor, max(size), toUnixTimestamp(max(stored_at)), dateDiff('second', max(stored_at), now64(6, 'UTC')) "
                "FROM audit_anchors WHERE log = {log:String} GROUP BY anchor",
                parameters={"log": self._origin},
            )
            .result_rows
        )
        found = {str(name): (int(size), float(at), float(age)) for name, size, at, age in rows}
        states = {}
        for anchor in self._anchors:
            size, at, age = found.get(anchor.name, (0, 0.0, 0.0))
            due = time.monotonic() + anchor.every_s - max(0.0, age) if size else 0.0
            states[anchor.name] = _State(size, at, stored=size, due=due)
        return states

    def _connected(self) -> Client:
        if self._client is None:
            self._client = connect(self._store)
        return self._client

    def _disconnect(self, error: Exception) -> None:
        log.debug("anchoring: %s", type(error).__name__)
        self.close()


def _compare(anchor: Anchor, state: _State, size: int) -> None:
    """Note if the store names a larger checkpoint than that of the log, and make a submission due then."""
    if state.stored <= size:
        state.excess = ""
    elif not state.excess:
        state.excess = (
            f"the store names a checkpoint of {state.stored} leaves of {anchor.name}, and the log has {size}: a row was forged, or an old "
            "backup was restored. Run assay audit verify --full"
        )
        state.due = 0.0
        log.error("a checkpoint is not one of this log: %s", state.excess)
