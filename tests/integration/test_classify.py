"""Columns of a ClickHouse database are classified by names, types and values, as a user who may only read."""

import json
from pathlib import Path

from assay_runtime.store import connect, insert_json_rows
from tests.support.cli import Cli
from tests.support.sample_rows import candidate, lines
from tests.support.store import PASSWORD, StoreServer


def test_the_columns_of_a_clickhouse_database_are_classified(migrated: StoreServer, tmp_path: Path) -> None:
    with connect(migrated.settings().store) as owner:
        owner.command("TRUNCATE TABLE assay_base.candidates")
        row = candidate(query="write to ann.planted@example.com")
        insert_json_rows(owner, "assay_base.candidates", lines([row]), 1)
    url = migrated.url.replace("://", f"://sre:{PASSWORD}@") + "/assay"
    done = Cli(tmp_path, store_url=migrated.url).call("pii", "classify", url, "--json", role="sre")
    assert done.returncode == 0, done.stderr
    assert b"ann.planted" not in done.stdout
    found = {(row["table"], row["column"]): row for row in map(json.loads, done.stdout.splitlines())}
    query, latency = found["assay.candidates", "query"], found["assay.candidates", "latency_ms"]
    assert (query["sensitivity"], query["categories"], query["type"]) == ("pii", ["contact"], "String")
    assert (latency["sensitivity"], latency["categories"]) == ("public", [])
