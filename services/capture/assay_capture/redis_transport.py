"""The connections to Redis: one pipelined round trip per batch, and the outcome of each entry.

Uses XADD, XLEN and MEMORY USAGE, and to connect AUTH (and SELECT for a database other than 0); WAIT if `redis.replicas`
is set, and CLUSTER SLOTS in a cluster. A producer needs no other rights.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from assay_capture.entry_queue import Entry
from assay_capture.masters import Masters, PasswordFileError, password_in
from assay_capture.transport import Outcome
from assay_schema.settings import RedisSettings, SettingsError
from assay_schema.streams import CAPTURE, FIELD
from assay_schema.topology import address_of


class RedisTransport:
    """Sends batches. Not thread-safe; blocks up to the time-outs of `RedisSettings`."""

    receiver = "Redis"
    advice: Mapping[str, str] = {
        "down": "check redis.url (ASSAY_REDIS_URL), for TLS redis.tls_ca_file, and that Redis is up and has memory",
        "refused": "check user and password in redis.url (ASSAY_REDIS_URL) or redis.password_file, "
        "and that the user may XADD on the capture streams",
        "password_file": "create the file or correct the setting (ASSAY_REDIS_PASSWORD_FILE, ASSAY_REDIS_SENTINEL_PASSWORD_FILE); "
        "it is read again at each attempt",
    }
    states: Mapping[str, str] = {"password_file": "refused"}
    longest_pause_s = 1.0
    slow_answer_s = 0.25
    batch_bytes = 4 * 1024 * 1024

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        keys = [CAPTURE.key(shard).encode() for shard in range(settings.shards)]
        #: By shard. Packed here, because redis-py's own packing of every entry costs ten times the CPU time of the host
        #: program.
        self._xadd = [b"*5\r\n" + _words(b"XADD", key, b"*", FIELD.encode()) for key in keys]
        self._xlen = [b"*2\r\n" + _words(b"XLEN", key) for key in keys]
        self._memory = [b"*5\r\n" + _words(b"MEMORY", b"USAGE", key, b"SAMPLES", b"0") for key in keys]
        #: False once Redis refuses: a user of an earlier version lacks this right, and the server's log should not fill
        #: with refusals.
        self._may_weigh = True
        patience_ms = b"%d" % max(1, int(settings.command_timeout_s * 500))
        self._wait = b"*3\r\n" + _words(b"WAIT", b"%d" % settings.replicas, patience_ms) if settings.replicas else b""
        #: By server: in a cluster one connection per shard, whose masters are separate servers; otherwise all shards
        #: use number 0.
        self._connections: dict[int, Any] = {}  # redis-py's connections are not typed
        self._connection_class, self._arguments = _connection_arguments(settings)
        self._masters = Masters(settings, self._connection_class, self._arguments)

    def send(self, entries: list[Entry], measure: tuple[int, ...] = ()) -> Outcome:
        """Add entries to their streams in order and measure shards, in one round trip (per server).

        After a lost connection or a time-out it is unknown whether the unanswered entries arrived. They are reported as
        failed and sent again; the second copy has the same `event_id` and does not become a second row. The same
        applies to entries that too few replicas have.
        """
        if self._settings.mode != "cluster":
            return self._send(0, entries, measure)
        outcomes = []
        for shard in sorted({shard for shard, _ in entries} | set(measure)):
            own = [entry for entry in entries if entry[0] == shard]
            outcomes.append(self._send(shard, own, (shard,) if shard in measure else ()))
        failed = {id(entry) for outcome in outcomes for entry in outcome.failed}
        # The worst problem is that of the whole batch; an entry that arrived is not sent again.
        worst = next((outcome for outcome in outcomes if outcome.problem), Outcome())
        depths = [outcome.depth for outcome in outcomes if outcome.depth is not None]
        sizes = [outcome.size for outcome in outcomes if outcome.size is not None]
        in_order = [entry for entry in entries if id(entry) in failed]
        return Outcome(in_order, worst.problem, worst.detail, max(depths, default=None), max(sizes, default=None))

    def _send(self, place: int, entries: list[Entry], measure: tuple[int, ...]) -> Outcome:
        answered = 0
        failed: list[Entry] = []
        problem: str | None = None
        detail = ""
        depth: int | None = None
        size: int | None = None
        from redis.exceptions import RedisError, ResponseError

        moved = _not_the_master()
        try:
            connection = self._connected(place)
            commands = [b"%b$%d\r\n%b\r\n" % (self._xadd[shard], len(data), data) for shard, data in entries]
            commands += [self._xlen[shard] for shard in measure]
            weighed = measure if self._may_weigh else ()
            commands += [self._memory[shard] for shard in weighed]
            if entries and self._wait:
                commands.append(self._wait)
            connection.send_packed_command([b"".join(commands)])
            for entry in entries:
                try:
                    connection.read_response(disable_decoding=True)
                except moved:
                    raise  # the next connection goes to the new master
                except ResponseError as error:
                    if self._replaced(error):
                        raise
                    failed.append(entry)
                    problem, detail = _classified(error)
                answered += 1
            for _ in measure:
                # Without this right there is no high-water mark; that is no reason to stop.
                with suppress(ResponseError):
                    depth = max(depth or 0, int(connection.read_response()))
            for _ in weighed:
                try:
                    size = max(size or 0, int(connection.read_response() or 0))
                except ResponseError:
                    self._may_weigh = False
            if entries and self._wait and int(connection.read_response()) < self._settings.replicas:
                if self._settings.mode != "standalone":
                    self._close(place)  # it may be cut off from its replicas, and replaced by one of them
                return Outcome(entries, "down", "too few replicas; check redis.replicas", depth, size)
        except (RedisError, OSError, ValueError, PasswordFileError) as error:
            self._close(place)
            # Without the answer to `WAIT` it is unknown which entries a replica has, regardless of the master's answer.
            failed = entries if self._wait else failed + entries[answered:]
            problem, detail = _classified(error)
        return Outcome(failed, problem, detail, depth, size)

    def _replaced(self, error: Exception) -> bool:
        """True if the refusing master may have been replaced without learning of it."""
        return self._settings.mode != "standalone" and str(error).startswith("NOREPLICAS")

    def close(self) -> None:
        """Close the connections, if any. In a forked child this closes only the child's copies."""
        for place in list(self._connections):
            self._close(place)

    def _close(self, place: int) -> None:
        connection = self._connections.pop(place, None)
        if connection is not None:
            connection.disconnect()

    def _connected(self, place: int) -> Any:
        if place not in self._connections:
            arguments = dict(self._arguments)
            if self._settings.password_file is not None:
                arguments["password"] = password_in(self._settings.password_file, "redis.password_file")
            if self._settings.mode != "standalone":
                arguments["host"], arguments["port"] = self._masters.of(place, arguments.get("password"))
            connection = self._connection_class(**arguments)
            connection.connect()
            self._await_answer(connection, place)
            self._connections[place] = connection
        return self._connections[place]

    def _await_answer(self, connection: Any, place: int) -> None:
        """Ask for a length before the first entries are sent, so that a Redis that is loading refuses that.

        The refusal closes the connection. Otherwise such a Redis would refuse the first entries of a batch and accept
        the last ones once it has loaded: these would arrive twice, and before the others.
        """
        from redis.exceptions import ResponseError

        connection.send_packed_command([self._xlen[place]])
        try:
            connection.read_response()
        except _not_the_master():
            connection.disconnect()
            raise
        except ResponseError:  # a user without this right may still add entries
            pass


def _connection_arguments(settings: RedisSettings) -> tuple[Any, dict[str, Any]]:
    from redis import connection as redis_connection
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    parse_url: Any = redis_connection.parse_url  # not typed
    try:
        arguments: dict[str, Any] = dict(parse_url(address_of(settings)))
    except ValueError:
        raise SettingsError(
            "redis.url (or ASSAY_REDIS_URL): must be redis://[user:password@]host:port/db, rediss://... for TLS, or unix://path"
        ) from None
    connection_class = arguments.pop("connection_class", redis_connection.Connection)
    if issubclass(connection_class, redis_connection.SSLConnection):
        arguments |= {
            "ssl_ca_certs": _path(settings.tls_ca_file),
            "ssl_certfile": _path(settings.tls_cert_file),
            "ssl_keyfile": _path(settings.tls_key_file),
        }
    arguments |= {
        "socket_connect_timeout": settings.connect_timeout_s,
        "socket_timeout": settings.command_timeout_s,
        "retry": Retry(NoBackoff(), 0),  # the publisher decides when to retry
        "protocol": 2,  # saves HELLO, which a producer's user may lack
    }
    return connection_class, arguments


def _not_the_master() -> tuple[type[Exception], ...]:
    from redis.exceptions import AskError, ClusterDownError, ReadOnlyError, TryAgainError

    return AskError, ClusterDownError, ReadOnlyError, TryAgainError


def _path(path: Any) -> str | None:
    return None if path is None else str(path)


def _words(*words: bytes) -> bytes:
    """Encode the words of a command in RESP, the protocol of Redis."""
    return b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def _classified(error: Exception) -> tuple[str, str]:
    from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, ResponseError
    from redis.exceptions import ConnectionError as RedisConnectionError

    name = type(error).__name__
    if isinstance(error, (AuthenticationError, AuthorizationError, NoPermissionError)):
        return "refused", name
    if isinstance(error, PasswordFileError):
        return "password_file", str(error)
    if isinstance(error, ResponseError):
        code = str(error).split(" ", 1)[0]
        return "down", f"{name} {code}" if code.isalpha() and code.isupper() else name
    if isinstance(error, RedisConnectionError):
        return "down", f"{name}: {error}"  # the address and the reason; such messages contain no password
    return "down", name
