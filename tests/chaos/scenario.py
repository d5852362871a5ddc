"""What a scenario is: a fault, the load it meets, and what the fault may touch."""

import math
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.chaos.rig import Rig

if TYPE_CHECKING:
    from tests.chaos.producers import Producers


@dataclass(frozen=True)
class Load:
    """What the producers of a scenario do."""

    #: Of the run's events, how large a part; 1 is the usual one.
    weight: float = 1.0
    #: How long it lasts if nothing holds it up, in seconds.
    seconds: float = 8.0
    raw: int = 2
    sdk: int = 2
    #: Of the events, how many go through the SDK.
    sdk_share: float = 0.2
    skew_s: float = 0.0
    #: Events near the limits of the contract, up to a mebibyte each, instead of ordinary ones.
    large: bool = False
    #: The part of a raw producer's events that is ordinary, before it sends only large ones; -1 for no change.
    large_after: float = -1
    high_water: int = 1_000_000
    #: How long a producer waits for an answer of Redis, in seconds.
    timeout_s: float = 3.0
    #: The processes with the SDK are programs that gevent patched before anything else.
    gevent: bool = False
    #: Every second process sends to the gateway over HTTP instead of to Redis.
    over_http: bool = False


@dataclass
class Stage:
    """What a fault may touch."""

    rig: Rig
    rng: random.Random
    producers: "Producers"
    #: How many events the load has.
    events: int
    poison: set[str] = field(default_factory=set)
    #: What the fault itself saw go wrong.
    wrong: list[str] = field(default_factory=list)
    #: When something was last killed, by the monotonic clock; infinite if nothing was.
    died: float = math.inf
    #: Times between which what Redis took is not promised, since it lost the end of its log: Unix seconds.
    forgotten: list[tuple[float, float]] = field(default_factory=list)

    def pause(self, shortest: float, longest: float) -> None:
        """Let time pass, in seconds."""
        time.sleep(self.rng.uniform(shortest, longest))

    def kill(self, *names: str) -> None:
        """`kill -9` of all at once; the keeper brings them back. Redis is killed when its log holds what it answered."""
        if "redis" in names:
            self.rig.until_redis_has_written()
        self.died = time.monotonic()
        for name in names:
            self.rig.processes[name].send(signal.SIGKILL)


Fault = Callable[[Stage], None]


def nothing_is_missing() -> str:
    """The answer of a fault that every machine can bring about."""
    return ""


@dataclass(frozen=True)
class Scenario:
    """One fault under load."""

    name: str
    fault: Fault
    load: Load = Load()
    scrubbers: int = 1
    writers: int = 1
    #: Says why the fault cannot be brought about here; '' if it can.
    missing: Callable[[], str] = nothing_is_missing
    #: Why the writer must have found its sink away, by the incidents it recorded: a fault that nobody noticed was none.
    incident: str | None = None
    #: What happens, where the docstring of the fault does not say it.
    about: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return self.about or (self.fault.__doc__ or "").partition("\n")[0]


TWO = {"scrubbers": 2, "writers": 2}
