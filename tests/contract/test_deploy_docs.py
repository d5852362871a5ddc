"""docs/deploy.md names files, services and settings that exist."""

import re

from assay_access.identities import IDENTITIES
from assay_runtime.queries import named_queries
from assay_schema.settings import FILE_VARIABLE, SWITCH_VARIABLE, variables
from tests.contract.compose_files import BASE, ROOT, load

TEXT = (ROOT / "docs/deploy.md").read_text()
SERVICES = load(BASE)["services"]


def test_every_path_exists_or_is_a_secret() -> None:
    made = ("deploy/secrets", "deploy/docker/settings/assay.toml", "deploy/docker/settings/alertmanager.yml")
    paths = set(re.findall(r"(?:deploy|services|docs)/[\w./-]*\w", TEXT))
    assert len(paths) > 10
    for path in paths:
        assert path.startswith(made) or (ROOT / path).exists(), path


def test_every_service_it_runs_is_in_compose() -> None:
    named = re.findall(r"docker compose run --rm (?:-T )?(\w+)", TEXT) + re.findall(r"--scale (\w+)=", TEXT)
    assert len(named) > 5
    assert set(named) <= set(SERVICES)


def test_every_query_it_asks_has_that_name() -> None:
    texts = [TEXT, BASE.read_text(), (ROOT / "deploy/prometheus/alerts.yml").read_text()]
    named = set().union(*(re.findall(r"(?:sre|assay) query ([\w-]+)", text) for text in texts))
    assert len(named) > 1
    assert named <= set(named_queries())


def test_every_setting_it_names_exists() -> None:
    known = {f"{section}.{name}" for section, name in variables().values()}
    sections = {name.partition(".")[0] for name in known}
    for section, name in re.findall(r"`(\w+)\.(\w+)`", TEXT):
        if section in sections and name not in {"pem", "key"}:
            assert f"{section}.{name}" in known
    assert set(re.findall(r"\bASSAY_\w+", TEXT)) <= set(variables()) | {FILE_VARIABLE, SWITCH_VARIABLE}


def test_it_says_of_every_identity_what_it_may_do() -> None:
    table = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert table == [identity.name for identity in IDENTITIES]


def test_backups_use_the_volume_and_the_image_of_compose() -> None:
    document = load(BASE)
    volumes = re.findall(r"-v assay_([\w-]+):/data", TEXT)
    assert volumes == ["clickhouse-data", "clickhouse-data"]
    assert set(volumes) <= set(document["volumes"])
    assert document["name"] == "assay"
    assert set(re.findall(r"clickhouse/clickhouse-server:[\d.]+", TEXT)) == {SERVICES["clickhouse"]["image"]}


def test_no_command_names_its_own_compose_files_since_the_next_one_would_drop_them() -> None:
    assert not re.findall(r"docker compose.* -f ", TEXT)
    assert "COMPOSE_FILE=docker-compose.yml:deploy/docker/tls.yml" in TEXT
