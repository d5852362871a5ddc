"""Two installations on one machine whose producers share a spool directory."""

import orjson

from assay_schema.streams import CAPTURE, FIELD
from tests.chaos.ledger import Books, reconcile
from tests.chaos.producers import Producers
from tests.chaos.scenario import Load, Scenario, Stage
from tests.support.redis import RedisServer

#: The producers of the other installation. None of them ever waits in vain for an answer or is killed while it sends, so that each event is
#: one entry there.
THEIRS = Load(seconds=6, raw=0, sdk=2, sdk_share=1, timeout_s=60)
#: How many events they have, as a part of ours.
THEIR_PART = 0.2


def two_destinations(stage: Stage) -> None:
    """Two Redis share a spool; producers of both are killed as they spool and start again. One Redis is away at first, then the other."""
    home = stage.rig.directory / "elsewhere"
    home.mkdir()
    server, ours = RedisServer(home), stage.producers
    events = round(stage.events * THEIR_PART)
    theirs = Producers(stage.rig, ours.service, THEIRS, events, stage.rng.randrange(1 << 30), elsewhere=server.url)
    try:
        for their_redis_is_back in (False, False, True):
            stage.rig.to_capture.refusing = True
            stage.rig.to_capture.cut()
            stage.rig.until(lambda: theirs.flowing and ours.flowing, "all have handed something over")
            stage.pause(1, 1.5)
            _killed(stage, ours, theirs)
            if their_redis_is_back:
                server.start()
            else:
                stage.rig.to_capture.heal()
            _started(ours, theirs)
            if not their_redis_is_back:
                stage.rig.until(
                    lambda: ours.flowing and not ours.left(), "ours have sent what was left, and not theirs"
                )
                stage.pause(1, 1.5)
        stage.wrong += [f"elsewhere: {fault}" for fault in [*theirs.emptied(), *_faults(theirs, server)]]
        stage.rig.to_capture.heal()
    finally:
        theirs.stop()
        server.stop()


def _killed(stage: Stage, *both: Producers) -> None:
    for producers in both:
        producers.kill_sdk()
    if not all(producers.left() for producers in both) and not stage.wrong:
        stage.wrong.append("the fault did not bite: those that were killed left nothing in the spool")


def _started(*both: Producers) -> None:
    for producers in both:
        for _ in range(2):
            producers.start_sdk()


def _faults(theirs: Producers, server: RedisServer) -> list[str]:
    """What is wrong with the entries of the other Redis: all of its producers, each once, and none of ours."""
    sent, attempted, dropped = theirs.books()
    return reconcile(Books(sent, attempted, arrived(server), dropped=dropped)).faults


def arrived(server: RedisServer) -> list[str]:
    """The events that a Redis was sent, one for each entry."""
    with server.client() as client:
        entries = client.xrange(CAPTURE.key())
    return [orjson.loads(entry[FIELD.encode()])["event_id"] for _, entry in entries]


SCENARIOS = (Scenario("two destinations over one spool", two_destinations, Load(seconds=10, sdk=2, sdk_share=0.4)),)
