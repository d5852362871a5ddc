"""The SDK's HTTP transport against the real gateway and the real Redis: killed, stopped, slow, with a revoked key, over TLS."""

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_capture import Capture
from assay_schema.settings import Settings
from assay_schema.streams import CAPTURE
from tests.support.certificates import Authority
from tests.support.gateway import Gateway, redis_with_identities, running_gateway
from tests.support.wait import until

Make = Callable[..., Capture]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    directory = tmp_path / "gateway"
    directory.mkdir()
    with running_gateway(directory) as running:
        yield running


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Capture] = []

    def make_one(gateway: Gateway, key: str, **settings: Any) -> Capture:
        section = {"url": f"http://127.0.0.1:{gateway.port}", "key": key, "timeout_s": 60.0, "flush_interval_ms": 5}
        section |= {"spool_dir": tmp_path / "spool", "spool_bytes": 2**30, **settings}
        made.append(Capture(Settings.model_validate({"capture": section}), service="tests", enabled=True))
        return made[-1]

    yield make_one
    for capture in made:
        capture.close(0)


def retrieve(capture: Capture, query: str = "how long are rows kept?", **fields: Any) -> str:
    plain = {"tool_name": "query", "retrieved_slugs": ["a"], "retrieved_chunk_ids": [1], "latency_ms": 1.5}
    return capture.retrieval(query=query, **{**plain, **fields})


def ids(gateway: Gateway) -> list[str]:
    return [event["event_id"] for event in gateway.stored()]


def in_first_order(event_ids: list[str]) -> list[str]:
    return list(dict.fromkeys(event_ids))


def test_events_go_to_the_project_of_the_key_with_all_that_the_sdk_knows(gateway: Gateway, make: Make) -> None:
    capture = make(gateway, gateway.key(project="shop"))
    event_id = retrieve(
        capture, retrieved_ids=["kb#1"], passages=[{"id": "kb#1", "text": "Ninety days."}], user_hash="9f" * 16
    )
    assert capture.flush(60)
    (stored,) = gateway.stored()
    assert (stored["event_id"], stored["project"], stored["service"]) == (event_id, "shop", "tests")
    assert (stored["origin"], stored["user_hash"]) == ("sdk", "9f" * 16)
    assert stored["payload"]["passages"] == [{"id": "kb#1", "text": "Ninety days."}]
    assert capture.stats().rejected == {}


def test_the_lines_of_the_guide_send_an_event_when_they_are_pasted(gateway: Gateway, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gateway.md").read_text()
    (lines,) = re.findall(r"```sh\n(export ASSAY_CAPTURE=1.*?)```", page, re.DOTALL)
    secrets = tmp_path / "data" / "secrets"
    secrets.mkdir(parents=True)
    (secrets / "gateway.curl").write_text(f'header = "Authorization: Bearer {gateway.key()}"\n')
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment["ASSAY_CAPTURE_SPOOL_DIR"] = str(tmp_path / "spool")
    pasted = lines.replace("9108", str(gateway.port))
    run = subprocess.run(["sh", "-c", pasted], cwd=tmp_path, env=environment, capture_output=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, b"")
    (stored,) = gateway.stored()
    assert (stored["service"], stored["project"], stored["payload"]["query"]) == ("try", "shop", "boots")


def test_events_are_scrubbed_before_they_leave_the_producer_if_it_says_so(gateway: Gateway, make: Make) -> None:
    capture = make(gateway, gateway.key(project="shop"), scrub="producer")
    retrieve(capture, "ask ada.planted@example.com", passages=[{"id": "1", "text": "ada.planted@example.com"}])
    assert capture.flush(60)
    (stored,) = gateway.stored()
    assert stored["project"] == "shop"
    assert (stored["payload"]["query"], stored["payload"]["passages"][0]["text"]) == ("ask [REDACTED]", "[REDACTED]")


def test_a_gateway_that_is_killed_in_the_middle_of_batches_loses_no_event_and_keeps_their_order(
    gateway: Gateway, make: Make
) -> None:
    capture = make(gateway, gateway.key(), batch_entries=20)
    sent: list[str] = []
    for number in range(4):
        stored = len(ids(gateway))
        sent += [retrieve(capture, f"{number}") for _ in range(2_000)]
        until(lambda stored=stored: len(ids(gateway)) > stored, "nothing arrives")  # type: ignore[misc]
        gateway.kill()  # some of the 2,000 are stored, some are under way
        sent += [retrieve(capture, f"{number} while it is away") for _ in range(100)]
        gateway.start()
    until(lambda: set(ids(gateway)) >= set(sent), "not all arrive")
    assert capture.flush(60)
    arrived = ids(gateway)
    assert in_first_order(arrived) == sent, (
        "a repeated event has the same id, so one row; the first copies are in order"
    )
    stats = capture.stats()
    assert (stats.dropped, stats.rejected, stats.queue_entries, stats.spool_bytes) == ({}, {}, 0, 0)
    assert stats.captured == stats.published + stats.spooled == len(sent)
    # At most the batch under way is repeated at each kill.
    assert len(arrived) - len(sent) <= 4 * 20


def test_a_gateway_that_answers_nothing_holds_up_neither_the_caller_nor_the_end(gateway: Gateway, make: Make) -> None:
    capture = make(gateway, gateway.key(), timeout_s=5.0)
    sent = [retrieve(capture)]
    assert capture.flush(60)
    assert gateway.process
    os.kill(gateway.process.pid, signal.SIGSTOP)
    try:
        sent += [retrieve(capture, f"{number}") for number in range(500)]
        until(lambda: capture.stats().spooled > 0, "events do not go to the spool")
        capture.close(0.5)
        stats = capture.stats()
        assert stats.captured == stats.published + stats.spooled + sum(stats.dropped.values())
        assert stats.dropped == {}
    finally:
        os.kill(gateway.process.pid, signal.SIGCONT)
    after = make(gateway, gateway.key())  # the next process of the same user
    sent.append(retrieve(after))
    until(lambda: set(ids(gateway)) >= set(sent), "the spool does not arrive")


def test_a_key_that_is_revoked_keeps_the_spool_until_there_is_another(
    gateway: Gateway, make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="assay_capture")
    file, first = tmp_path / "key", gateway.key()
    file.write_text(first)
    capture = make(gateway, "", key_file=file)
    sent = [retrieve(capture)]
    assert capture.flush(60)
    gateway.revoke(first)

    def refused() -> bool:
        sent.append(retrieve(capture))
        return capture.stats().gateway == "refused"

    until(refused, "the revoked key is still good")
    until(lambda: capture.stats().spool_bytes > 0, "the events are not in the spool")
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert first.split("_")[2] in errors[0]
    assert first.split("_")[3] not in caplog.text
    file.write_text(gateway.key())
    until(lambda: set(ids(gateway)) >= set(sent), "the spool does not arrive")
    assert in_first_order(ids(gateway)) == sent
    assert capture.stats().dropped == {}


def test_events_that_break_the_contract_are_counted_by_rule_and_the_others_arrive(gateway: Gateway, make: Make) -> None:
    capture = make(gateway, gateway.key(project="shop"))
    good = retrieve(capture)
    retrieve(capture, "x" * 60_000)
    retrieve(capture, user_hash="ada@example.com")
    retrieve(capture, project="docs")
    assert capture.flush(60)
    assert ids(gateway) == [good]
    stats = capture.stats()
    assert stats.rejected == {"string_too_long": 1, "string_pattern_mismatch": 1, "project_forbidden": 1}
    assert (stats.published, stats.dropped) == (1, {"rejected": 3})


def test_a_redis_that_is_away_behind_the_gateway_makes_events_wait(gateway: Gateway, make: Make) -> None:
    capture = make(gateway, gateway.key())
    sent = [retrieve(capture)]
    assert capture.flush(60)
    gateway.redis.kill()
    sent += [retrieve(capture, f"{number}") for number in range(50)]
    until(lambda: capture.stats().gateway == "busy", "the gateway does not say that it is busy")
    gateway.redis.start()
    until(lambda: set(ids(gateway)) >= set(sent), "the events do not arrive")
    assert in_first_order(ids(gateway)) == sent


def test_the_certificate_of_the_gateway_is_verified(tmp_path: Path, make: Make) -> None:
    authority, other = Authority(tmp_path / "tls"), Authority(tmp_path / "other")
    certificate, key_of_certificate = authority.issue("gateway")
    redis = redis_with_identities(tmp_path)
    files = {"ASSAY_GATEWAY_TLS_CERT_FILE": str(certificate), "ASSAY_GATEWAY_TLS_KEY_FILE": str(key_of_certificate)}
    gateway = Gateway(tmp_path, redis, **files).start()
    try:
        key = gateway.key()
        address = f"https://localhost:{gateway.port}"
        for number, wrong in enumerate(
            [{"tls_ca_file": other.ca}, {}, {"url": f"https://127.0.0.1:{gateway.port}", "tls_ca_file": authority.ca}]
        ):
            refused = make(gateway, key, **{"url": address, "spool_dir": tmp_path / f"wrong-{number}", **wrong})
            retrieve(refused)
            until(lambda refused=refused: refused.stats().gateway == "down", "it is not refused")  # type: ignore[misc]
        with redis.client() as client:
            assert client.xlen(CAPTURE.key()) == 0
        good = make(gateway, key, url=address, tls_ca_file=authority.ca)
        sent = [retrieve(good)]
        assert good.flush(60)
        assert ids(gateway) == sent
    finally:
        gateway.kill()
        redis.stop()
