"""Fixtures for every package's tests."""

# numpy reads its number of threads when it is loaded
import os

# Several workers share the cores. Threads of a matrix product that wait for one another cost more than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import inspect
import signal
import time
from collections.abc import Collection, Generator, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from assay_runtime.migrate import migrate
from tests.support.made_once import made_once
from tests.support.redis import INSTALLED, SERVERS, RedisServer, half, usual_binary
from tests.support.store import StoreServer

# A runner in the background of a shell, or under nohup, hands down ignored signals, and every process a test starts would ignore them too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test asserts a duration: a busy machine is not a defect. The same examples each time: a change is judged by what it changes, and not by
# who happens on a rare case. `--hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("assay", settings.get_profile("search"), derandomize=True, database=None)
settings.load_profile("assay")

#: A test marked `one_day` takes less than this, in seconds.
LONGEST_OF_A_DAY_S = 120


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the search for cycles, and leave what was collected out of later ones: it is a million objects, and all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers share the tests so that each module's servers start once, and no worker is left with a long test when the others are done."""
    begun = set[object]({None})
    for item in sorted(items, key=lambda each: each.get_closest_marker("slow") is not None):
        if _runs_on_each_server(item):
            item.add_marker(pytest.mark.each_server)
            item.add_marker(pytest.mark.redis)
        elif _leads_to(item, _REDIS_STARTERS):
            item.add_marker(pytest.mark.redis)
            others = _stands_for(item)
            if others not in begun and not item.get_closest_marker("bare_only"):
                item.add_marker(pytest.mark.bare)  # the others differ in their input, not in their Redis
            begun.add(others)
        if item.get_closest_marker("bare_only"):
            item.add_marker(pytest.mark.bare)
        if _leads_to(item, _PROCESS_STARTERS) or item.get_closest_marker("each_server"):
            item.add_marker(pytest.mark.server)
        # A test alone costs its worker a message to the scheduler and back, which is longer than most take.
        quick = item.get_closest_marker("slow") is None and item.get_closest_marker("server") is None
        if item.get_closest_marker("xdist_group") is None and (quick or _has_fixtures_of_its_module(item)):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_place)


def _stands_for(item: pytest.Item) -> object:
    """What a quick test stands for on a bare machine: its cases or its module. None if the module runs on the bundled Redis anyway."""
    if _starts_system(item):
        return item.path, getattr(item, "cls", None), getattr(item, "originalname", item.name)
    return item.path if half(item.path) == 0 else None


def _place(item: pytest.Item) -> tuple[bool, bool]:
    """Long tests first, and those that compute without waiting last: they fill what is left of every worker's time."""
    return item.get_closest_marker("slow") is None, item.get_closest_marker("server") is None


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Choose the module's Redis, and let midnight pass before a test that is about one day and would not end in this one."""
    RedisServer.usual_binary = usual_binary(item.path)
    left_s = 86_400 - time.time() % 86_400
    if left_s < LONGEST_OF_A_DAY_S and item.get_closest_marker("one_day"):
        time.sleep(left_s + 0.1)


def _starts_system(item: pytest.Item) -> bool:
    """Return True for tests of the whole system, which looks for its Redis itself."""
    return "e2e" in item.path.parts


#: Modules whose functions, classes and tests start the Redis that is installed here.
_REDIS_STARTERS = (
    "tests.support.redis",
    "tests.support.replicated_redis",
    "tests.support.deployed_redis",
    "tests.bench.durability",
    "tests.chaos",
    "tests.e2e",
)
#: Names and modules by which any other process is started.
_PROCESS_STARTERS = (
    *_REDIS_STARTERS,
    "subprocess",
    "multiprocessing",
    "pty",
    "tests.support.store",
    "tests.support.anthropic_server",
)


def _leads_to(item: pytest.Item, modules: tuple[str, ...]) -> bool:
    """Whether a test, a fixture of it, or a function or class of tests that they name, names something of these modules."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [each.func for found in item._fixtureinfo.name2fixturedefs.values() for each in found]  # noqa: SLF001
    return any(_names_one(function, modules) for function in (item.function, *fixtures))


@cache
def _names_one(named: Any, modules: tuple[str, ...]) -> bool:
    return any(name.startswith(modules) for name in _modules_named(named))


@cache
def _modules_named(named: Any) -> frozenset[str]:
    """The modules that a function or a class leads to, by the names in its text."""
    seen, left = set[Any](), [named]
    modules = set[str]()
    while left:
        one = inspect.unwrap(left.pop())
        if one in seen:
            continue
        seen.add(one)
        modules.add(one.__module__)
        for function in filter(inspect.isfunction, (one, *vars(one).values())):
            names = set(_names(function.__code__))
            if names & {"INSTALLED", "SERVERS"}:
                modules.add("tests.support.redis")
            values = [function.__globals__.get(name) for name in names]
            modules |= {value.__name__ for value in values if inspect.ismodule(value)}
            left += [value for value in values if _is_of_tests(value)]
    return frozenset(modules)


def _names(code: CodeType) -> Iterator[str]:
    """Of a function and those inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_of_tests(value: Any) -> bool:
    """Whether it is a function or a class that some tests' module made."""
    return (inspect.isfunction(value) or inspect.isclass(value)) and "tests" in value.__module__.split(".")


def _runs_on_each_server(item: pytest.Item) -> bool:
    """Whether a test runs once with each server there is, by its parameters."""
    return (
        isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and not SERVERS.keys().isdisjoint(item.callspec.id.split("-"))
    )


def _has_fixtures_of_its_module(item: pytest.Item) -> bool:
    definitions = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}  # noqa: SLF001
    return any(definition.scope == "module" for found in definitions.values() for definition in found)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a store with all tables and no row, for other stores to begin with: migrations take seconds of CPU."""

    def make(directory: Path) -> None:
        with StoreServer(directory) as server:
            migrate(server.settings())

    return made_once(tmp_path_factory, "tables", make) / "data"


@pytest.fixture(scope="module")
def migrated(
    request: pytest.FixtureRequest, tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoreServer]:
    """A real store with all tables and no row, one for each module; in one with `MAY_TAMPER`, its owner may change an audit log."""
    may_tamper = getattr(request.module, "MAY_TAMPER", False)
    with StoreServer(tmp_path_factory.mktemp("store"), tables=tables, may_tamper=may_tamper) as server:
        yield server


@pytest.fixture(scope="session")
def _kept_store(
    tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StoreServer, Collection[str]]]:
    """A real store for many tests, and the tables whose rows the migrations made."""
    with StoreServer(tmp_path_factory.mktemp("kept-store"), tables=tables) as server:
        yield server, server.tables_with_rows()


@pytest.fixture
def empty_store(_kept_store: tuple[StoreServer, Collection[str]]) -> Iterator[StoreServer]:
    """A real store with all tables and no row, which a test may also kill: the one of an earlier test, emptied.

    A start takes seconds of CPU. A test that changes tables, users or settings of the store takes `own_store`.
    """
    server, made = _kept_store
    server.empty(kept=made)
    yield server
    server.rest()


@pytest.fixture
def own_store(request: pytest.FixtureRequest, tables: Path, tmp_path: Path) -> Iterator[StoreServer]:
    """A real store with all tables and no row, for one test alone; `MAY_TAMPER` as with `migrated`."""
    may_tamper = getattr(request.module, "MAY_TAMPER", False)
    with StoreServer(tmp_path / "store", tables=tables, may_tamper=may_tamper) as server:
        yield server


@pytest.fixture
def redis_binary() -> str:
    """The server to run: the one that `assay up` takes."""
    return INSTALLED.path


@pytest.fixture
def redis_server(tmp_path: Path, redis_binary: str) -> Iterator[RedisServer]:
    """A real Redis with an append-only file, gone after the test."""
    directory = tmp_path / "redis"
    directory.mkdir()
    server = RedisServer(directory, binary=redis_binary).start()
    yield server
    server.stop()
