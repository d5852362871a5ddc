"""What the writer asks the store at its start, as a process against a real Redis and a real store."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay_runtime.store import connect
from assay_schema.alerts import handed_in
from assay_schema.ids import first_row_at
from assay_schema.streams import alert_inbox_key, scrubbed_low_watermark_key
from tests.support.alert_samples import EPISODE, episode
from tests.support.health import said
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.replicated_redis import until
from tests.support.sample_rows import candidate
from tests.support.store import PASSWORD, StoreServer

#: A watermark and a row above it, in the year 2030.
STORED = first_row_at(1_900_000_000_000)


@pytest.fixture(scope="module")
def store(migrated: StoreServer) -> StoreServer:
    owner = connect(migrated.settings().store)
    owner.command(f"INSERT INTO assay_base.watermarks (shard, watermark) VALUES (0, {STORED})")
    row = json.dumps(candidate(1) | {"id": STORED + 77})
    owner.raw_insert("assay_base.candidates", insert_block=row.encode(), fmt="JSONEachRow")
    owner.close()
    return migrated


@contextlib.contextmanager
def writing(store: StoreServer, redis: RedisServer, directory: Path, **settings: str) -> Iterator[Callable[[], str]]:
    """A writer's process, gone afterwards; yields what asks its `/readyz`."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment |= {
        "ASSAY_REDIS_URL": redis.url,
        "ASSAY_STORE_URL": store.url,
        "ASSAY_STORE_USER": "writer",
        "ASSAY_STORE_PASSWORD": PASSWORD,
        "ASSAY_WRITER_PORT": str(port),
    } | settings
    log = directory / "writer.log"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "assay_writer"], env=environment, stdout=out, stderr=out)

    def ready() -> str:
        assert process.poll() is None, log.read_text()
        return said(port, "/readyz")[1]

    try:
        yield ready
    finally:
        process.terminate()
        process.wait(60)


def test_a_redis_without_anything_is_told_which_ids_the_store_has(
    store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    with writing(store, redis_server, tmp_path), redis_server.client() as client:
        until(lambda: int(client.get(scrubbed_low_watermark_key()) or 0) >= STORED + 77, "it is told")


def test_shards_that_were_added_without_a_migration_hold_exports_back(
    store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    owner = connect(store.settings().store)
    assert owner.query("SELECT watermark FROM assay.watermark").result_rows[0][0] >= STORED
    with writing(store, redis_server, tmp_path, ASSAY_REDIS_SHARDS="3"):
        until(
            lambda: len(owner.query("SELECT shard FROM assay.watermarks").result_rows) == 3,
            "each shard has a watermark",
        )
    owner.command("DELETE FROM assay_base.watermarks WHERE shard > 0")
    owner.close()


def test_a_writer_that_may_not_ask_works_and_says_what_it_needs(
    store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    with writing(store, redis_server, tmp_path, ASSAY_STORE_USER="evaluator") as ready:
        until(lambda: "users.d/assay.xml" in ready(), "it says so")
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "old", "on", ">x", "~*", "+@all", "-set")
    url = redis_server.url.replace("redis://", "redis://old:x@")
    with writing(store, redis_server, tmp_path, ASSAY_REDIS_URL=url) as ready:
        until(lambda: "users.acl.template" in ready(), "it says so")


def test_alerts_that_were_handed_in_reach_the_stream_and_the_store(
    store: StoreServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    alert_id = handed_in(EPISODE)
    alerts = [alert.model_copy(update={"transition_id": handed_in(alert.transition_id)}) for alert in episode(alert_id)]
    with redis_server.client() as client:
        client.rpush(alert_inbox_key(), *(alert.model_dump_json() for alert in alerts))
        with writing(store, redis_server, tmp_path), connect(store.settings().store) as owner:
            until(lambda: client.llen(alert_inbox_key()) == 0, "they are moved")
            counted = "SELECT count() FROM assay.alerts"
            until(lambda: owner.query(counted).result_rows[0][0] == len(alerts), "they are stored")
