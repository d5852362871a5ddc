"""The import contracts: every package is in them, and each fails for an import that it forbids."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = PROJECT["tool"]["importlinter"]
PACKAGES = sorted(
    path.parent
    for pattern in PROJECT["tool"]["uv"]["workspace"]["members"]
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
)
#: For each contract, a module and an import that breaks it.
BROKEN_BY = {
    "Services import only from shared, never from one another": ("assay_writer/rows.py", "assay_judge.lexical"),
    "Command line, then launcher and demo, operations, services, runtime and access, schema": (
        "assay_operations/progress.py", "assay_cli.errors",
    ),
    "The schema package does no I/O": ("assay_schema/ids.py", "redis"),
    "What scrubs in a producer's process loads nothing of a service": ("assay_scrubber/producer.py", "assay_runtime.clock"),
    "The SDK needs only redis, orjson, pydantic and the schema": ("assay_capture/capture.py", "assay_runtime.clock"),
    "The assembler knows neither keys nor the store": ("assay_assembler/span.py", "assay_access.api_keys"),
    "Evaluation: from a whole evaluation down to the statistics": ("assay_evals/errors.py", "assay_evals.compare"),
    "Operations print nothing and serve nothing": ("assay_operations/progress.py", "click"),
    "Operations use the cores of services, never what starts them": ("assay_operations/progress.py", "assay_writer.app"),
    "The command line reaches services through operations": ("assay_cli/errors.py", "assay_judge.lexical"),
    "The command line reaches the store through operations": ("assay_cli/errors.py", "assay_runtime.store"),
}  # fmt: skip


def test_every_package_of_the_workspace_is_in_the_contracts() -> None:
    named = {tomllib.loads((path / "pyproject.toml").read_text())["project"]["name"] for path in PACKAGES}
    assert {name.replace("-", "_") for name in named} == set(CONTRACTS["root_packages"])


def test_every_package_is_in_a_layer() -> None:
    [layers] = [
        each["layers"] for each in CONTRACTS["contracts"] if each["type"] == "layers" and "containers" not in each
    ]
    assert {name for layer in layers for name in layer.split(" | ")} == set(CONTRACTS["root_packages"])


def test_every_contract_has_an_import_that_breaks_it() -> None:
    assert {each["name"] for each in CONTRACTS["contracts"]} == BROKEN_BY.keys()


class Copy:
    """A copy of the packages, in which an import can be added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for package in PACKAGES:
            for module in package.glob("assay_*"):
                shutil.copytree(module, folder / module.name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        shutil.copy(ROOT / "pyproject.toml", folder)

    def broken(self) -> set[str]:
        """The contracts that do not hold."""
        done = subprocess.run(
            [str(Path(sys.executable).parent / "lint-imports"), "--cache-dir", str(self.folder / "cache")],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "COLUMNS": "1000"},
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )
        said = " ".join(done.stdout.split())
        assert re.search(r"Contracts: \d+ kept, \d+ broken", said), done.stdout + done.stderr
        found = {name for name in BROKEN_BY if f"{name} BROKEN" in said}
        assert bool(found) == bool(done.returncode), said
        return found


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("packages"))


@pytest.mark.slow
@pytest.mark.xdist_group("import-contracts")
@pytest.mark.parametrize("contract", BROKEN_BY)
def test_each_contract_fails_for_an_import_that_it_forbids(copied: Copy, contract: str) -> None:
    module, imported = BROKEN_BY[contract]
    path = copied.folder / module
    before = path.read_text()
    path.write_text(f"{before}\nimport {imported}\n")
    try:
        assert contract in copied.broken()
    finally:
        path.write_text(before)


@pytest.mark.slow
@pytest.mark.xdist_group("import-contracts")
def test_the_copy_itself_breaks_no_contract(copied: Copy) -> None:
    assert copied.broken() == set()
