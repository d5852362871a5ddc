"""Choose the transport by the settings: Redis, or the gateway if `capture.url` is set."""

import hashlib
import re

from assay_capture.transport import Transport
from assay_schema.settings import Settings
from assay_schema.topology import destination


class Route:
    """The way of events. Making it checks nothing."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        to_gateway = settings.capture.url is not None
        #: `redis` or `http`, for the counters.
        self.name = "http" if to_gateway else "redis"
        #: The gateway has one queue; it knows the shards.
        self.shards = 1 if to_gateway else settings.redis.shards
        #: True if events leave their project to the gateway, which knows that of the key.
        self.project_of_key = to_gateway and "project" not in settings.capture.model_fields_set

    def destination(self) -> str:
        """Return the name of the spool's directory: equal for equal receivers. Raises `SettingsError`."""
        if self.name == "redis":
            return destination(self._settings.redis)
        from assay_capture.gateway_connection import address_of

        address = address_of(self._settings.capture)
        digest = hashlib.sha256(f"{address.host}:{address.port}{address.path}".encode()).hexdigest()[:16]
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", f"{address.host}-{address.port}").strip("-.")[:80]
        return f"http-{readable}-{digest}"

    def connect(self) -> Transport:
        """Return the transport, not connected yet. Raises `SettingsError` for an unusable address."""
        if self.name == "redis":
            from assay_capture.redis_transport import RedisTransport

            return RedisTransport(self._settings.redis)
        from assay_capture.http_transport import HttpTransport

        return HttpTransport(self._settings.capture)
