"""The outcome of the last `assay audit verify` as metrics of the auditor, from its record in a real store."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client import REGISTRY

from assay_auditor.last_verification import LastVerification, export, last_verification, watch
from assay_runtime.store import connect
from tests.support.audited import ORIGIN, Audited, operation
from tests.support.cli import Cli
from tests.support.store import StoreServer

#: See the fixture `migrated`.
MAY_TAMPER = True


@pytest.fixture
def audited(own_store: StoreServer, tmp_path: Path) -> Iterator[Audited]:
    with connect(own_store.settings().store) as owner:
        yield Audited(own_store, owner, tmp_path / "log")


def exported() -> tuple[float | None, float]:
    """Return the gauge of a mismatch, and the time of the last verification."""
    seconds = REGISTRY.get_sample_value("assay_audit_verified_seconds")
    return REGISTRY.get_sample_value("assay_audit_verification_mismatch"), seconds or 0.0


def read(audited: Audited) -> LastVerification:
    """Read the last verification with the rights of the auditor."""
    with connect(audited.settings().store) as client:
        return last_verification(client, "assay", ORIGIN)


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline, exported()
        time.sleep(0.05)


def test_the_auditor_exports_the_outcome_that_the_command_recorded(
    audited: Audited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path, store_url=audited.server.url)
    own = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{audited.directory}"\n'

    def verify(*arguments: str) -> int:
        return cli.call("audit", "verify", *arguments, role="owner", extra=own).returncode

    export(read(audited))
    assert exported() == (0, 0)
    audited.calls(5)
    audited.watermark()
    audited.audit()
    began = read(audited).began_s
    export(read(audited))
    assert began
    assert exported() == (0, began)
    assert verify() == 0
    export(read(audited))
    assert exported()[0] == 0
    assert exported()[1] > began
    audited.owner.command(
        "ALTER TABLE assay_base.audit_rows UPDATE tool_name = 'x' WHERE leaf_index = 2", settings={"mutations_sync": 2}
    )
    assert verify() == 1
    monkeypatch.setattr("assay_auditor.last_verification.EVERY_S", 0.05)
    ended = threading.Event()
    thread = threading.Thread(target=watch, args=(audited.settings().store, ORIGIN, ended))
    thread.start()
    try:
        until(lambda: exported()[0] == 1)
        assert verify("--since", "2030-01-01T00:00:00Z") == 0  # it did not read the changed row
        assert read(audited).found_mismatch
        audited.owner.command(
            "ALTER TABLE assay_base.audit_rows UPDATE tool_name = 'search_docs' WHERE leaf_index = 2",
            settings={"mutations_sync": 2},
        )
        assert verify() == 0
        until(lambda: exported()[0] == 0)
    finally:
        ended.set()
        thread.join()


def test_a_record_whose_time_is_ahead_does_not_count_as_a_later_verification(audited: Audited) -> None:
    target = orjson.dumps({"log": ORIGIN, "complete": True, "mismatches": 0}).decode()
    record: dict[str, Any] = {"operation": "audit verify", "target": target, "at": "2099-01-01T00:00:00Z"}
    audited.insert("operations_audit", operation("done", **record))
    found = read(audited)
    assert found.at_s is not None
    assert found.at_s <= found.now_s < found.at_s + 3_600


def test_records_of_other_logs_and_partial_intact_ones_do_not_count(audited: Audited) -> None:
    for target in ({"log": "another", "complete": True}, {"log": ORIGIN, "complete": False}, {"log": ORIGIN}):
        audited.insert(
            "operations_audit", operation("done", operation="audit verify", target=orjson.dumps(target).decode())
        )
    assert read(audited).at_s is None
    partial = orjson.dumps({"log": ORIGIN, "complete": False, "mismatches": 3}).decode()
    audited.insert("operations_audit", operation("failed", operation="audit verify", target=partial))
    assert (read(audited).found_mismatch, read(audited).mismatches) == (True, 3)
