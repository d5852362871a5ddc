"""Scenarios in which half of the events come over HTTP, and the gateway dies with what it has in hand.

What the gateway answered with 200 must be visible once, or recorded once as a failure. What it did not answer is sent again by the
producer, and must not be there twice.
"""

from tests.chaos.faults import killed
from tests.chaos.scenario import Load, Scenario

#: Half of the requests come from the SDK, half from programs without it.
OVER_HTTP = Load(over_http=True, sdk_share=0.5)

SCENARIOS = (
    Scenario(
        "gateway killed",
        killed("gateway", times=4),
        OVER_HTTP,
        about="`kill -9` of the gateway alone, in the middle of requests.",
    ),
    Scenario(
        "gateway and redis killed",
        killed("gateway", "redis"),
        OVER_HTTP,
        about="`kill -9` of the gateway and Redis at once.",
    ),
    Scenario(
        "redis killed behind the gateway",
        killed("redis"),
        OVER_HTTP,
        about="`kill -9` of Redis while the gateway waits for its answers.",
    ),
    Scenario(
        "gateway, scrubber and writer killed",
        killed("gateway", "scrubber-1", "writer-1"),
        OVER_HTTP,
        about="`kill -9` of the gateway and of both services behind it at once.",
    ),
)
