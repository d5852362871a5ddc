"""One producer process that gevent patched before anything else: `python -m tests.chaos.greenlets ORDER`.

As in `tests.chaos.load`, but the events come from greenlets that share one `Capture`, as requests of a web server do.
"""

from gevent import monkey

monkey.patch_all()

import sys  # noqa: E402
from dataclasses import replace  # noqa: E402

import gevent  # noqa: E402

from tests.chaos import load  # noqa: E402

GREENLETS = 8


def sdk(order: load.Order, attempted: load.Notes, sent: load.Notes) -> None:
    """Each greenlet captures its part of the events at its part of the rate."""
    capture = load.capture_for(order)
    parts = [
        replace(
            order,
            events=len(range(number, order.events, GREENLETS)),
            rate=order.rate / GREENLETS,
            seed=order.seed * GREENLETS + number,
        )
        for number in range(GREENLETS)
    ]
    gevent.joinall(
        [gevent.spawn(load.hand_over, capture, part, attempted, sent) for part in parts if part.events],
        raise_error=True,
    )
    load.close(capture, order)


if __name__ == "__main__":
    load.main(sys.argv[1], sdk)
