"""Run several Redis servers on loopback: a cluster with replicas, or a master watched by Sentinels."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from assay_schema.topology import SLOTS, master_of_slot, slot_of
from tests.support.ports import free_port
from tests.support.redis import INSTALLED, RedisServer

#: Milliseconds without an answer after which a server counts as dead.
DEAD_AFTER_MS = 1_500
#: A replica that connects to an idle master does not have to wait for others before it copies.
_EAGER = ("--repl-diskless-sync-delay", "0")


def until(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Wait until a condition is met and return its value; an unreachable server counts as not met."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := condition():
                return found
        except redis.RedisError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


class Cluster:
    """A cluster of masters, each with a replica or none. Node `n` begins as a master, node `masters + n` as its replica."""

    def __init__(self, directory: Path, masters: int = 3, replicas: int = 1, options: tuple[str, ...] = ()) -> None:
        self.nodes: list[RedisServer] = []
        self._masters, self._replicas = masters, replicas
        for number in range(masters * (1 + replicas)):
            home = directory / f"node-{number}"
            home.mkdir(parents=True)
            node = RedisServer(
                home,
                *("--cluster-enabled", "yes", "--cluster-node-timeout", str(DEAD_AFTER_MS)),
                *("--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"),
                *(*_EAGER, *options),
            )
            self.nodes.append(node)
        self.url = "redis://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[: max(2, masters)])

    def start(self) -> "Cluster":
        """Start all nodes, and wait until every slot has a master and every master its replica."""
        for node in self.nodes:
            node.start()
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            with node.client() as client:
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
                if number < self._masters:
                    share = range(SLOTS * number // self._masters, SLOTS * (number + 1) // self._masters)
                    client.execute_command("CLUSTER", "ADDSLOTS", *share)
                if node is not first:
                    client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.port)
        for node in self.nodes:
            until(lambda node=node: len(_known(node)) == len(self.nodes), "the nodes know one another")
        for number, node in enumerate(self.nodes[self._masters :]):
            master = self.node_id(self.nodes[number % self._masters])
            with node.client() as client:
                until(
                    lambda client=client, master=master: client.execute_command("CLUSTER", "REPLICATE", master),
                    "replica",
                )
        until(self.whole, "the cluster is whole")
        return self

    def whole(self) -> bool:
        """Return whether every running node sees every slot served, and every running master has a replica in step, if there are any."""
        for node in self.running():
            with node.client() as client:
                if b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO", NEVER_DECODE=True):
                    return False
                state = client.info("replication")
                if state["role"] == "slave" and state["master_link_status"] != "up":
                    return False
        return True

    def running(self) -> list[RedisServer]:
        """Return the running nodes."""
        return [node for node in self.nodes if node.running]

    def masters(self) -> list[RedisServer]:
        """Return the running nodes that are masters."""
        found = []
        for node in self.running():
            with node.client() as client:
                if client.info("replication")["role"] == "master":
                    found.append(node)
        return found

    def node_id(self, node: RedisServer) -> str:
        """Return the cluster's ID of a node."""
        with node.client() as client:
            return str(client.execute_command("CLUSTER", "MYID").decode())

    def master_of(self, shard: int) -> RedisServer:
        """Return the node that currently has a shard, according to the running nodes."""
        for node in self.running():
            connection = redis.Connection(port=node.port, socket_timeout=60, protocol=2)
            try:
                connection.send_command("CLUSTER", "SLOTS")
                place = master_of_slot(connection.read_response(), slot_of(shard), "127.0.0.1")
            finally:
                connection.disconnect()
            for other in self.running():
                if place and other.port == place[1]:
                    return other
        raise redis.ConnectionError(f"nobody has shard {shard}")

    def client(self, shard: int) -> "redis.Redis":
        """Return a client of a shard's current master."""
        return self.master_of(shard).client()

    def begin_move(self, shard: int, target: RedisServer) -> None:
        """Mark a shard's slot as migrating to another master: until the end, commands with two of its keys fail."""
        source, slot = self.master_of(shard), slot_of(shard)
        with source.client() as leaving, target.client() as taking:
            taking.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", self.node_id(source))
            leaving.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", self.node_id(target))

    def finish_move(self, shard: int, source: RedisServer, target: RedisServer) -> None:
        """Move the keys of a shard's slot, and then the slot, as `redis-cli --cluster reshard` does."""
        slot = slot_of(shard)
        with source.client() as leaving:
            while keys := leaving.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1):
                leaving.execute_command("MIGRATE", "127.0.0.1", target.port, keys[0], 0, 5_000)
        for node in (target, source, *self.masters()):
            with node.client() as client:
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", self.node_id(target))

    def stop(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.stop()


def _known(node: RedisServer) -> list[str]:
    with node.client() as client:
        text = client.execute_command("CLUSTER", "NODES", NEVER_DECODE=True).decode()
    return [line for line in text.splitlines() if "handshake" not in line]


#: The users of replicas and Sentinels, so that a server can be cut off from them alone.
_FOLLOWER, _WATCHER = "follower", "watcher"
#: A command that only Sentinels send to a server.
_OF_SENTINELS = ("ping", "slaveof", "replicaof")


class Watched:
    """A master with replicas, and three Sentinels that call the master `assay`."""

    def __init__(self, directory: Path, options: tuple[str, ...] = (), replicas: int = 1) -> None:
        self.servers: list[RedisServer] = []
        self._replicas = replicas
        users = [word for user in (_FOLLOWER, _WATCHER) for word in ("--user", user, "on", ">x", "~*", "&*", "+@all")]
        for number in range(1 + replicas):
            home = directory / f"server-{number}"
            home.mkdir(parents=True)
            following = ("--replicaof", "127.0.0.1", str(self.servers[0].port)) if number else ()
            login = ("--masteruser", _FOLLOWER, "--masterauth", "x")
            self.servers.append(RedisServer(home, *_EAGER, *users, *login, *following, *options))
        self._directory = directory
        self._ports = [free_port() for _ in range(3)]
        self._sentinels: list[subprocess.Popen[bytes]] = []
        self._silent: socket.socket | None = None
        self.url = "redis://" + ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def start(self) -> "Watched":
        """Start all servers, and wait until the replica is in step and the Sentinels know it and one another."""
        for server in self.servers:
            server.start()
        with self.servers[0].client() as client:
            until(
                lambda: client.info("replication")["connected_slaves"] == self._replicas, "the replicas have connected"
            )
        for replica in self.servers[1:]:
            with replica.client() as client:
                until(
                    lambda client=client: client.info("replication")["master_link_status"] == "up", "they are in step"
                )
        for port in self._ports:
            home = self._directory / f"sentinel-{port}"
            home.mkdir()
            (home / "sentinel.conf").write_text(
                f'port {port}\nbind 127.0.0.1\ndir "{home}"\n'
                f"sentinel monitor assay 127.0.0.1 {self.servers[0].port} 2\n"
                f"sentinel down-after-milliseconds assay {DEAD_AFTER_MS}\nsentinel failover-timeout assay 2500\n"
                f"sentinel auth-user assay {_WATCHER}\nsentinel auth-pass assay x\n"
            )
            with (home / "log").open("wb") as log:
                command = [INSTALLED.path, str(home / "sentinel.conf"), "--sentinel"]
                self._sentinels.append(subprocess.Popen(command, stdout=log, stderr=log))
        for port in self._ports:
            with redis.Redis(port=port, socket_timeout=60) as sentinel:
                until(lambda sentinel=sentinel: self._complete(sentinel), "the Sentinels know one another")
        return self

    def cut_off(self, server: RedisServer) -> None:
        """Cut the network between a master and its replicas and Sentinels, but not its other connections.

        A connection over a broken network does not end. So the master keeps one, to a replica that sends nothing any more, and
        accepts writes until `min-replicas-max-lag` is over.
        """
        self._silent = _silent_replica(server)
        with server.client() as client:
            for user in (_FOLLOWER, _WATCHER):
                client.execute_command("ACL", "SETUSER", user, "off")
                client.execute_command("CLIENT", "KILL", "USER", user)
            # The user of a Sentinel that cannot log in.
            client.execute_command("ACL", "SETUSER", "default", *(f"-{command}" for command in _OF_SENTINELS))

    def join(self, server: RedisServer) -> None:
        """Restore the network."""
        if self._silent:
            self._silent.close()
        with server.client() as client:
            for user in (_FOLLOWER, _WATCHER):
                client.execute_command("ACL", "SETUSER", user, "on")
            client.execute_command("ACL", "SETUSER", "default", *(f"+{command}" for command in _OF_SENTINELS))

    def master(self) -> RedisServer:
        """Return the server that a majority of Sentinels names."""
        named = []
        for port in self._ports:
            with redis.Redis(port=port, socket_timeout=60) as sentinel:
                named.append(sentinel.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", "assay")[1])
        port = max(named, key=named.count)
        return next(server for server in self.servers if server.port == int(port))

    def in_step(self) -> bool:
        """Return whether the master has its replicas, and Sentinels can fail over to each."""
        with self.master().client() as client:
            if client.info("replication")["connected_slaves"] != self._replicas:
                return False
        with redis.Redis(port=self._ports[0], socket_timeout=60) as sentinel:
            replicas = [each for each in sentinel.sentinel_slaves("assay") if each["port"]]  # except a silent one
            return all(replica["flags"] == "slave" and replica["master-link-status"] == "ok" for replica in replicas)

    def stop(self) -> None:
        """End all servers."""
        if self._silent:
            self._silent.close()
        for sentinel in self._sentinels:
            sentinel.kill()
            sentinel.wait(60)
        for server in self.servers:
            server.stop()

    def _complete(self, sentinel: Any) -> bool:
        (state,) = sentinel.sentinel_masters().values()
        return bool(state["num-other-sentinels"] == 2 and state["num-slaves"] == self._replicas)


def _silent_replica(server: RedisServer) -> socket.socket:
    """Open a connection that the server takes for a replica in step that has not reported its offset."""
    replica = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    replica.sendall(b"PSYNC ? -1\r\n")
    replica.setblocking(False)

    def online() -> bool:
        with contextlib.suppress(BlockingIOError):
            replica.recv(1 << 20)
        state = client.info("replication")
        return any(
            each["port"] == 0 and each["state"] == "online"
            for name, each in state.items()
            if name[:5] == "slave" and name[5:].isdigit()
        )

    with server.client() as client:
        until(online, "the silent replica is taken for one")
    return replica
