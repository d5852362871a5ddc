"""A store with an audit log, for tests: sources, watermark, passes of the auditor."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from assay_auditor.anchors.anchoring import Anchoring
from assay_auditor.anchors.configured import anchors_of
from assay_auditor.auditor import Auditor
from assay_runtime.store import Client, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import AuditorSettings, Settings
from tests.support.sample_rows import Json, iso, lines, tool_call
from tests.support.store import StoreServer

TABLES = ("audit_rows", "audit_leaves", "audit_disclosures", "audit_checkpoints", "audit_anchors")
ORIGIN = "example.com/audit"
#: Above every `id` of a sample row.
ALL = 2**53 - 1


def settings_of(server: StoreServer, directory: Path, role: str = "auditor", **auditor: Any) -> Settings:
    """Return the settings of a role, with the log in a directory."""
    own = AuditorSettings.model_validate({"origin": ORIGIN, "directory": directory, **auditor})
    return server.settings(role).model_copy(update={"auditor": own})


@dataclass
class Audited:
    """A store, its owner's client, and the directory of its log."""

    server: StoreServer
    owner: Client
    directory: Path

    def insert(self, table: str, *rows: Json) -> None:
        """Insert rows into a base table."""
        insert_json_rows(self.owner, f"assay_base.{table}", lines(list(rows)), len(rows))

    def calls(self, count: int, start: int = 0, **fields: Any) -> list[Json]:
        """Insert tool calls, and return them."""
        rows = [tool_call(start + number, **fields) for number in range(count)]
        self.insert("tool_calls", *rows)
        return rows

    def watermark(self, place: int = ALL) -> None:
        """Set the closed watermark of the only shard."""
        self.insert("watermarks", {"shard": 0, "watermark": place})

    def settings(self, role: str = "auditor", **auditor: Any) -> Settings:
        """Return the settings of a role."""
        return settings_of(self.server, self.directory, role, **auditor)

    def auditor(self, **settings: Any) -> Auditor:
        """Return an auditor that has done nothing yet."""
        return Auditor(self.settings(**settings))

    def audit(self, **settings: Any) -> None:
        """Run an auditor until nothing is left, and sign."""
        auditor = self.auditor(**settings)
        try:
            while auditor.step():
                pass
            assert not auditor.problem, auditor.problem
        finally:
            auditor.close()

    def anchor(self, **settings: Any) -> Anchoring:
        """Submit the newest checkpoint to the anchors as the service does, and return their state."""
        own = self.settings(**settings)
        anchoring = Anchoring(ORIGIN, own.store, anchors_of(own.auditor))
        auditor = self.auditor(**settings)
        try:
            while auditor.step():
                pass
            anchoring.step(auditor.newest)
        finally:
            auditor.close()
            anchoring.close()
        return anchoring

    @contextmanager
    def auditing(self, **settings: Any) -> Iterator[None]:
        """Run an auditor within the block, as the service does. It signs whenever the log has grown."""
        auditor, stop = self.auditor(checkpoint_leaves=1, **settings), threading.Event()

        def passes() -> None:
            while not stop.wait(0.01):
                auditor.step()
            auditor.close()

        thread = threading.Thread(target=passes)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def query(self, sql: str) -> list[Sequence[Any]]:
        """Run a query as the owner."""
        return list(self.owner.query(sql).result_rows)

    def size(self) -> int:
        """Return the number of leaves."""
        return int(self.query("SELECT uniqExact(leaf_index) FROM assay.audit_leaves")[0][0])


def failure(**fields: Any) -> Json:
    """Return a tool call that the scrubber lost."""
    return {
        "schema_version": 1,
        "failure_id": new_event_id(),
        "event_id": new_event_id(),
        "entry_id": "1700000000000-0",
        "project": "default",
        "service": "search",
        "stage": "scrubber",
        "reason": "scrubber_exception",
        "error_class": "PolicyRefusedError",
        "detail": "args: refused",
        "deliveries": 1,
        "created_at": iso(time.time_ns() // 1_000_000),
        "pii_attempted": ["contact", "health"],
        "pii_blocked": ["health"],
        **fields,
    }


def operation(outcome: str = "started", **fields: Any) -> Json:
    """Return a record of a deletion."""
    return {
        "schema_version": 1,
        "operation_id": new_event_id(),
        "outcome": outcome,
        "at": "2026-05-17T18:00:00.000Z",
        "operation": "prune",
        "actor": "ana",
        "identity": "owner",
        "host": "host-1",
        "through": "command line",
        "target": orjson.dumps({"project": "shop"}).decode(),
        "planned": 3,
        "changed": 0,
        "comment": "asked by jo",
        "error_kind": "",
        "version": "0.1.0",
        **fields,
    }
