"""TLS by settings alone: Redis as deploy/redis configures it, the store behind HTTPS, and no way around verification."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis.exceptions

from assay_runtime.connection import connect as connect_redis
from assay_runtime.faststream_adapter import make_broker
from assay_runtime.migrate import migrate
from assay_runtime.store import connect as connect_store
from assay_runtime.store import insert_json_rows
from assay_schema.settings import RedisSettings, Settings, StoreSettings
from assay_schema.streams import CAPTURE, EVENTS, scrubbed_low_watermark_key
from tests.support.certificates import Authority, TlsProxy
from tests.support.deployed_redis import DeployedRedis
from tests.support.ports import free_port
from tests.support.producer import captured
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "stranger")


@pytest.fixture(scope="module")
def tls_redis(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[DeployedRedis]:
    server = DeployedRedis(tmp_path_factory.mktemp("redis"), authority).start()
    yield server
    server.stop()


@pytest.fixture
def strict_redis(tmp_path: Path, authority: Authority) -> Iterator[DeployedRedis]:
    server = DeployedRedis(tmp_path, authority, ask=True).start()
    yield server
    server.stop()


async def ping(settings: RedisSettings) -> bool:
    client = connect_redis(settings, attempts=0)
    try:
        return bool(await client.ping())
    finally:
        await client.aclose()


async def test_a_service_reaches_redis_with_a_password_file_and_a_ca(tls_redis: DeployedRedis) -> None:
    assert await ping(tls_redis.settings("scrubber"))


async def test_the_broker_of_a_service_reaches_redis_too(tls_redis: DeployedRedis) -> None:
    broker = make_broker(tls_redis.settings("scrubber"))
    await broker.connect()
    try:
        assert await broker.ping(5)
    finally:
        await broker.stop()


async def test_a_certificate_of_another_authority_is_refused(tls_redis: DeployedRedis, stranger: Authority) -> None:
    with pytest.raises(redis.exceptions.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        await ping(tls_redis.settings("scrubber", tls_ca_file=stranger.ca))


async def test_without_a_ca_of_ours_the_systems_decide(tls_redis: DeployedRedis) -> None:
    with pytest.raises(redis.exceptions.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        await ping(tls_redis.settings("scrubber", tls_ca_file=None))


async def test_a_certificate_for_another_host_is_refused(tls_redis: DeployedRedis) -> None:
    with pytest.raises(redis.exceptions.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        await ping(tls_redis.settings("scrubber", host="127.0.0.1"))


async def test_nothing_is_served_in_the_clear(tls_redis: DeployedRedis) -> None:
    with pytest.raises(redis.exceptions.ConnectionError):
        await ping(tls_redis.settings("scrubber", scheme="redis"))


async def test_a_redis_that_asks_for_certificates_is_shown_one(
    strict_redis: DeployedRedis, authority: Authority
) -> None:
    certificate, key = authority.issue("client")
    assert await ping(strict_redis.settings("scrubber", tls_cert_file=certificate, tls_key_file=key))
    with pytest.raises(redis.exceptions.ConnectionError):
        await ping(strict_redis.settings("scrubber"))


def length(server: DeployedRedis, key: str) -> int:
    """Entries of a stream."""
    with server.client("owner") as client:
        return int(client.xlen(key))


def test_a_producer_hands_its_events_in_over_tls_and_the_scrubber_takes_them_on(
    tls_redis: DeployedRedis, tmp_path: Path
) -> None:
    assert captured(tls_redis.settings("producer"), tmp_path, "is it encrypted?").published == 1
    assert length(tls_redis, CAPTURE.key()) == 1
    settings = tls_redis.settings("scrubber")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment |= {
        "ASSAY_REDIS_URL": settings.url.get_secret_value(),
        "ASSAY_REDIS_PASSWORD_FILE": str(settings.password_file),
        "ASSAY_REDIS_TLS_CA_FILE": str(settings.tls_ca_file),
        "ASSAY_SCRUBBER_PORT": str(free_port()),
    }
    with tls_redis.client("scrubber") as client:
        client.set(scrubbed_low_watermark_key(), 0)  # as a writer does
    log = tmp_path / "scrubber.log"
    with log.open("wb") as out:
        scrubber = [sys.executable, "-m", "assay_scrubber"]
        process = subprocess.Popen(scrubber, env=environment, cwd=tmp_path, stdout=out, stderr=out)
    try:
        until(lambda: length(tls_redis, EVENTS.key()) == 1 or process.poll() is not None, 40)
        assert process.poll() is None, log.read_text()
        assert length(tls_redis, CAPTURE.key()) == 0
    finally:
        process.terminate()
        process.wait(60)


def test_a_producer_that_cannot_verify_redis_keeps_its_events(
    tls_redis: DeployedRedis, stranger: Authority, tmp_path: Path
) -> None:
    stats = captured(tls_redis.settings("producer", tls_ca_file=stranger.ca), tmp_path, "is it encrypted?")
    assert stats.published == 0
    assert b"is it encrypted?" in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def tls_store(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[TlsProxy]:
    """The embedded store speaks no TLS; what ends it before the store stands for a server that does."""
    server = StoreServer(tmp_path_factory.mktemp("store")).start()
    proxy = TlsProxy(server.port, *authority.issue("store")).start()
    yield proxy
    proxy.stop()
    server.stop()


def over_tls(proxy: TlsProxy, ca: Path | None, role: str = "owner", host: str = "localhost") -> StoreSettings:
    return StoreSettings.model_validate(
        {"url": f"https://{host}:{proxy.port}", "user": role, "password": PASSWORD, "tls_ca_file": ca, "timeout_s": 20}
    )


def test_the_store_is_migrated_written_and_read_over_tls(tls_store: TlsProxy, authority: Authority) -> None:
    migrate(Settings(store=over_tls(tls_store, authority.ca)))
    writer = connect_store(over_tls(tls_store, authority.ca, "writer"), database="assay_base")
    insert_json_rows(writer, "assay_base.watermarks", b'{"shard":0,"watermark":7}', 1)
    writer.close()
    reader = connect_store(over_tls(tls_store, authority.ca, "sre"))
    assert reader.query("SELECT watermark FROM watermark").result_rows == [(7,)]
    reader.close()


@pytest.mark.parametrize(
    ("ca", "host"), [("stranger", "localhost"), ("none", "localhost"), ("ours", "127.0.0.1")],
    ids=["another authority", "no CA of ours", "another host"],
)  # fmt: skip
def test_a_store_that_cannot_be_verified_is_refused(
    tls_store: TlsProxy, authority: Authority, stranger: Authority, ca: str, host: str
) -> None:
    file = {"stranger": stranger.ca, "none": None, "ours": authority.ca}[ca]
    with pytest.raises(Exception, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
        connect_store(over_tls(tls_store, file, host=host))
