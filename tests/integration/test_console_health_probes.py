"""Which port of a service the console asks for its health: the gateway logs each request that it refuses at its other one."""

from pathlib import Path

from tests.support.console import Console
from tests.support.gateway import running_gateway
from tests.support.store import StoreServer


def test_pages_ask_the_gateway_at_its_health_port(migrated: StoreServer, tmp_path: Path) -> None:
    with running_gateway(tmp_path) as gateway:
        own = {"ASSAY_GATEWAY_PORT": str(gateway.health_port), "ASSAY_GATEWAY_LISTEN_PORT": str(gateway.port)}
        console = Console(tmp_path, gateway.redis, migrated.url, **own)
        try:
            console.start()
            for path in ("/api/v1/health", "/api/v1/overview"):
                services = {each["name"]: each for each in console.get(path).json["services"]}
                assert services["gateway"]["state"] == "good", path
        finally:
            console.kill()
        assert "answered" not in gateway.log(), "the console's probes reached the port of clients"
