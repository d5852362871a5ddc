"""The producers themselves: those that gevent patched, and those of two destinations that share a spool."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.destinations import arrived
from tests.chaos.load import Order, noted
from tests.chaos.producers import Producers
from tests.chaos.rig import ROOT, Rig
from tests.chaos.scenario import Load
from tests.support.redis import RedisServer
from tests.support.wait import until

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


@pytest.mark.parametrize("events", [3, 403])
def test_greenlets_hand_over_every_event_of_their_order_once(
    events: int, tmp_path: Path, redis_server: RedisServer
) -> None:
    pytest.importorskip("gevent")
    ledger = tmp_path / "ledger"
    order = Order(
        "sdk", redis_server.url, str(ledger), events, rate=1_000, service="web", seed=7, spool=str(tmp_path / "spool")
    )
    subprocess.run([sys.executable, "-m", "tests.chaos.greenlets", order.text()], cwd=ROOT, check=True, timeout=120)
    sent = noted(Path(f"{ledger}.sent"))
    assert len(sent) == events
    assert sorted(arrived(redis_server)) == sorted(sent) == sorted(noted(Path(f"{ledger}.attempted")))


def test_what_waits_in_a_spool_is_told_apart_by_its_destination(tmp_path: Path) -> None:
    rig, elsewhere = Rig(tmp_path), RedisServer(tmp_path)  # neither Redis is started
    for network in rig.networks:
        network.start()
    load = Load(seconds=60, raw=0, sdk=1, sdk_share=1, timeout_s=60)
    ours = Producers(rig, "both", load, 6_000, 1)
    theirs = Producers(rig, "both", load, 6_000, 2, elsewhere=elsewhere.url)
    try:
        until(lambda: ours.flowing and theirs.flowing)
        for producers in (ours, theirs):
            producers.kill_sdk()
        waiting = ours.left()
        assert waiting
        assert theirs.left()
        assert not set(waiting) & set(theirs.left())
        elsewhere.start()
        assert theirs.emptied() == []
        assert ours.left() == waiting
        sent, attempted, dropped = theirs.books()
        found = arrived(elsewhere)
        assert len(found) == len(set(found))
        assert sent <= set(found) <= attempted
        assert dropped == 0
    finally:
        for producers in (ours, theirs):
            producers.stop()
        elsewhere.stop()
        for network in rig.networks:
            network.stop()
