"""Redis as several servers: a cluster whose slots move and whose masters die, and a master behind Sentinels.

Producers count an event as handed over when a replica has it (`redis.replicas`), so the ledger holds exactly.
"""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import redis

from tests.chaos.proxy import Proxy
from tests.chaos.rig import Rig
from tests.chaos.scenario import Load, Scenario, Stage
from tests.support.redis import RedisServer
from tests.support.replicated_redis import Cluster, Watched, until

#: A master without a replica in step takes nothing: what producers try again must not pile up.
_CAREFUL = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2")


class ClusterRig(Rig):
    """Three masters with a replica each, a shard on each of two masters at least. No faulty networks."""

    topology = MappingProxyType({"mode": "cluster", "shards": 3, "replicas": 1})

    def __init__(self, directory: Path, sabotage: str | None = None) -> None:
        super().__init__(directory, sabotage)
        self.servers = Cluster(directory / "redis", options=_CAREFUL)

    def start_redis(self, directory: Path) -> None:  # noqa: ARG002
        """Start all nodes."""
        self.servers.start()

    def redis_url(self, network: Proxy | None = None) -> str:  # noqa: ARG002
        """Three of the nodes."""
        return self.servers.url

    def redis(self, shard: int = 0) -> "redis.Redis":
        """A client of the master of a shard."""
        return self.servers.client(shard)

    def stop(self) -> None:
        """End everything."""
        super().stop()
        self.servers.stop()


class WatchedRig(Rig):
    """A master and its replica, which three Sentinels watch."""

    topology = MappingProxyType({"mode": "sentinel", "shards": 1, "replicas": 1})

    def __init__(self, directory: Path, sabotage: str | None = None) -> None:
        super().__init__(directory, sabotage)
        self.servers = Watched(directory / "redis", options=_CAREFUL)

    def start_redis(self, directory: Path) -> None:  # noqa: ARG002
        """Start all servers."""
        self.servers.start()

    def redis_url(self, network: Proxy | None = None) -> str:  # noqa: ARG002
        """The Sentinels."""
        return self.servers.url

    def redis(self, shard: int = 0) -> "redis.Redis":  # noqa: ARG002
        """A client of the master."""
        return self.servers.master().client()

    def stop(self) -> None:
        """End everything."""
        super().stop()
        self.servers.stop()


class LenientRig(WatchedRig):
    """A master with two replicas, which goes on for seconds after the network to them is gone."""

    def __init__(self, directory: Path, sabotage: str | None = None) -> None:
        super().__init__(directory, sabotage)
        options = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "8")
        self.servers = Watched(directory / "redis-of-three", options, replicas=2)


def slot_moved(stage: Stage) -> None:
    """The slot of a shard goes to another master and back, under load; half-way it stays for seconds."""
    cluster = _cluster(stage)
    for _ in range(2):
        stage.pause(0.7, 1.5)
        source = cluster.master_of(0)
        target = stage.rng.choice([node for node in cluster.masters() if node is not source])
        cluster.begin_move(0, target)
        stage.pause(1, 2)
        cluster.finish_move(0, source, target)
        until(lambda target=target: cluster.master_of(0) is target, "the slot has moved")
    stage.pause(0.5, 1)


def masters_killed(stage: Stage) -> None:
    """`kill -9` of the master of each of two shards; a replica takes over, and the dead one comes back as its replica."""
    cluster = _cluster(stage)
    for shard in (0, 1):
        stage.pause(0.7, 1.5)
        _killed(stage, cluster.master_of(shard), lambda old, shard=shard: cluster.master_of(shard) is not old)
        until(cluster.whole, "the cluster is whole")


def master_and_services_killed(stage: Stage) -> None:
    """A master dies together with the scrubber and the writer."""
    cluster = _cluster(stage)
    stage.pause(0.7, 1.5)
    stage.kill("scrubber-1", "writer-1")
    _killed(stage, cluster.master_of(0), lambda old: cluster.master_of(0) is not old)
    until(cluster.whole, "the cluster is whole")


def watched_master_killed(stage: Stage) -> None:
    """`kill -9` of the master, twice; the Sentinels promote its replica, and the dead one comes back as a replica."""
    assert isinstance(stage.rig, WatchedRig)
    watched = stage.rig.servers
    for _ in range(2):
        stage.pause(0.7, 1.5)
        _killed(stage, watched.master(), lambda old: watched.master() is not old)
        until(watched.in_step, "the old master follows the new one")


def watched_master_cut_off(stage: Stage) -> None:
    """The master is cut off from replicas and Sentinels, but not from producers and services, which stay with it until it takes nothing
    more. Meanwhile a replica has been promoted, and others of both work with that."""
    assert isinstance(stage.rig, WatchedRig)
    watched = stage.rig.servers
    stage.pause(0.7, 1.5)
    old = watched.master()
    watched.cut_off(old)
    until(lambda: watched.master() is not old, "a replica was promoted")
    stage.rig.scale(2, 2)
    with old.client() as client:
        until(lambda: _refuses(client), "the old master takes nothing more")
    stage.pause(0.3, 1)
    watched.join(old)
    until(watched.in_step, "the old master follows the new one")


def _refuses(client: "redis.Redis") -> bool:
    try:
        client.set("refused", 1)
    except redis.ResponseError:
        return True
    return False


def _cluster(stage: Stage) -> Cluster:
    assert isinstance(stage.rig, ClusterRig)
    return stage.rig.servers


def _killed(stage: Stage, server: RedisServer, replaced: Callable[[RedisServer], bool]) -> None:
    server.kill()
    until(lambda: replaced(server), "a replica was promoted")
    stage.pause(0.3, 1)
    server.start()


_LOAD = Load(seconds=8)
SCENARIOS: dict[type[Rig], tuple[Scenario, ...]] = {
    ClusterRig: (
        Scenario("cluster, slot moved", slot_moved, _LOAD),
        Scenario("cluster, masters killed", masters_killed, Load(seconds=12)),
        Scenario("cluster, master and services killed", master_and_services_killed, _LOAD),
    ),
    WatchedRig: (Scenario("sentinel, master killed", watched_master_killed, Load(seconds=12)),),
    LenientRig: (Scenario("sentinel, master cut off", watched_master_cut_off, Load(seconds=20)),),
}
