"""Generated documents say what the code does."""

import re
import subprocess
import sys
from pathlib import Path

from assay_runtime.connection import OLDEST_REDIS
from assay_runtime.migrate import ENGINE_MIN
from assay_schema import settings
from docs.generate import family_reference, openapi, package_picture
from docs.generate.asyncapi import main
from tests.bench.__main__ import SUITES

ROOT = Path(__file__).parents[2]
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("deploy/*/README.md"),
        ROOT / "assay.example.toml",
    ]
} | {"settings": Path(settings.__file__).read_text()}


def test_the_asyncapi_documents_are_what_the_services_generate() -> None:
    assert (
        main(
            [
                str(ROOT / "docs/asyncapi"),
                "assembler",
                "scrubber",
                "writer",
                "judge",
                "drift",
                "notifier",
                "otlp_exporter",
                "--check",
            ]
        )
        == 0
    ), "run: make docs"


def test_the_openapi_documents_are_what_the_gateway_accepts_and_the_console_answers() -> None:
    assert openapi.main(["--check"]) == 0, "run: make docs"


def test_the_reference_of_families_is_made_from_the_registry() -> None:
    assert family_reference.main(["--check"]) == 0, "run: make docs"


def test_the_picture_of_packages_is_made_from_their_imports() -> None:
    assert package_picture.main(["--check"]) == 0, "run: make docs"


def test_an_arrow_that_others_imply_is_left_out() -> None:
    imports = {"cli": {"operations", "schema"}, "operations": {"schema"}, "schema": set[str]()}
    assert list(package_picture.reduced(imports)) == [("cli", "operations"), ("operations", "schema")]


def test_an_arrow_of_a_layer_is_kept_although_others_imply_it() -> None:
    imports = {"cli": {"operations", "local"}, "local": {"operations"}, "operations": set[str]()}
    assert ("cli", "operations") not in list(package_picture.reduced(imports))
    assert ("cli", "operations") in list(package_picture.reduced(imports, frozenset({("cli", "operations")})))
    assert "assay_cli --> assay_operations" in package_picture.document()


def test_the_table_of_rights_is_what_identities_and_grants_say() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate.rights_table", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_oldest_clickhouse_is_the_same_wherever_it_is_told() -> None:
    oldest = re.compile(r"(?:ClickHouse|a server,) (\d+\.\d+) (?:or newer|is the oldest)")
    told = {name: set(found) for name, text in TEXTS.items() if (found := oldest.findall(text))}
    assert {"settings", "docs/settings.md", "docs/deploy.md", "docs/cluster.md", "CHANGELOG.md"} <= set(told)
    assert set().union(*told.values()) == {".".join(map(str, ENGINE_MIN))}, told


def test_the_oldest_redis_of_the_embedded_system_is_the_one_that_services_ask_for() -> None:
    oldest = ".".join(map(str, OLDEST_REDIS))
    assert f"`redis-server` {oldest} or newer" in TEXTS["docs/deploy.md"]
    assert f"Redis or Valkey, {oldest} or newer" in TEXTS["settings"]


def test_the_help_of_make_names_every_suite_that_can_be_measured() -> None:
    [named] = re.findall(r"^bench:.*\(SUITE=([\w|]+)\)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert tuple(named.split("|")) == SUITES
