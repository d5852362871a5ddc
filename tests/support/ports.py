"""Choose loopback ports for servers of tests and benchmarks, reserved also before the start and while a server is down.

A port that the kernel chooses (port 0) is one of those it also gives to outgoing connections: once it is released, any process on the
machine can get it a moment later, and on a busy machine one does. These ports are below that range (Linux: from 32,768), and each test
process reserves a separate block.
"""

import random
import socket

_FIRST, _LAST, _BLOCK = 10_000, 20_000, 200
#: The node of a Redis cluster also listens this much higher; blocks end below so that those are free too.
BUS_OFFSET = 10_000

_claims: list[socket.socket] = []
_left = range(0)


def free_port() -> int:
    """Return a port that no other test gets, and on which nothing listens."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """Return the first of so many consecutive ports."""
    global _left
    while True:
        if len(_left) < count:
            _left = _claim()
        chosen, _left = _left[:count], _left[count:]
        if all(_is_free(port) and _is_free(port + BUS_OFFSET) for port in chosen):
            return chosen[0]


def _claim() -> range:
    """Reserve a block: this process keeps its first port bound, without listening, until it ends."""
    for first in random.sample(range(_FIRST, _LAST, _BLOCK), (_LAST - _FIRST) // _BLOCK):
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", first))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return range(first + 1, first + _BLOCK)
    raise RuntimeError(f"all ports from {_FIRST} to {_LAST} on 127.0.0.1 are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do: recently closed connections do not matter
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True
