"""Operations write to Redis and the store only within an audit record, and every plan is applied in the same way."""

import ast
import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import assay_operations
from assay_operations.actor import Actor

PACKAGE = Path(str(assay_operations.__file__)).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
#: Methods of the clients of Redis and the store that change something, or may. `rename` and `unlink` are those of paths here.
METHODS = {
    "command", "decr", "delete", "eval", "evalsha", "expire", "fcall", "getdel", "getset", "hdel", "hincrby", "hset", "hsetnx",
    "incr", "incrby", "insert", "insert_df", "lpop", "lpush", "ltrim", "mset", "pexpire", "raw_insert", "register_script",
    "rpop", "rpush", "sadd", "set", "setex", "setnx", "srem", "xack", "xadd", "xclaim", "xdel", "xgroup_create", "xsetid",
    "xtrim", "zadd", "zrem",
}  # fmt: skip
#: Functions of other packages that write.
FUNCTIONS = {
    "insert_json_rows", "store_run", "store_attempt", "apply_pending", "apply_settings", "migrate_with",
    "assay_runtime.dead_letters.drop", "assay_runtime.dead_letters.requeue", "assay_runtime.migrate.migrate",
}  # fmt: skip
STATEMENTS = ("ALTER ", "CREATE ", "DELETE ", "DROP ", "INSERT ", "OPTIMIZE ", "RENAME ", "SYSTEM ", "TRUNCATE ")
#: Writes without an audit record, and why.
ALLOWED = {
    "audit.py: Attempt.__enter__": "the record itself",
    "audit.py: Attempt.__exit__": "the record itself",
    "audit.py: Trail._taken": "a record that waited",
    "audit.py: Trail.insert": "the record itself",
    "audit_grants.py: ": "names of rights, which it compares with those of the store",
    "audit.py: Trail.note": "the record itself, of something that changes nothing",
    "evaluations/judge_spending.py: Spending.settle": "it sets an event of this process, which calls that wait for money wake from",
    "evaluations/nightly.py: Nightly._store": "the record of a night",
    "evaluations/nightly.py: Nightly._publish.publish": "alerts that eval_outcomes has already; they are added to the inbox",
    "evaluations/run_store.py: apply": "a run that is new to the store or the same replaces no row; the other write is in an attempt",
    "evaluations/contradiction_reads.py: label_pair": "a label is its own record: its row names person and time, and replaces none",
    "evaluations/contradiction_store.py: expect_store": "it inserts no row: it finds out whether it may",
    "evaluations/contradiction_store.py: store_run": "a run is new to the store: its rows replace none",
    "evaluations/contradictions.py: PreparedContradictions.keep": "it stores the run, as above",
    "sessions/importing.py: _Publisher._append": "an import captures events, as a producer does; it changes nothing that is stored",
    "golden/save.py: _insert": "a case is its own record: each version has its reviewer and time, and replaces no row",
    "labelling/submit.py: _insert": "a label is its own record: its row names the person and the time, and replaces no row",
    "migrate.py: _migrations": "without the table of records, migrations create it first; they only add, and schema_migrations has them",
}


class Writes(ast.NodeVisitor):
    """The functions of a module, with the writes in each, and the calls of one another that are not in an attempt."""

    def __init__(self, source: str) -> None:
        self.bare: dict[str, list[int]] = {}
        self.calls: dict[str, set[str]] = {}
        self._within = set[str]()
        self._inside: list[str] = []
        self._attempts = 0
        self._origins: dict[str, str] = {}
        self.given: set[str] = set()
        self.visit(ast.parse(source))

    @property
    def unrecorded(self) -> set[str]:
        """Functions with a write that some way leads to without an attempt."""
        return {name for name in self.bare if self._reached_bare(name, frozenset())}

    def _reached_bare(self, name: str, seen: frozenset[str]) -> bool:
        if name in self.given or name in seen:  # called by nobody without an attempt
            return False
        short = name.rpartition(".")[2]
        callers = [caller for caller, called in self.calls.items() if short in called]
        if name == short and not short.startswith("_"):  # anybody may call it
            return True
        if not callers:
            return short not in self._within
        return any(self._reached_bare(caller, seen | {name}) for caller in callers)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            self._origins[each.asname or each.name] = f"{node.module}.{each.name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._enter(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._inside.append(node.name)
        if not isinstance(node, ast.ClassDef):
            annotations = {ast.unparse(each.annotation) for each in node.args.args if each.annotation}
            if "Attempt" in annotations and self._origins.get("Attempt") == "assay_operations.audit.Attempt":
                self.given.add(".".join(self._inside))
        self.generic_visit(node)
        self._inside.pop()

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        attempts = sum("attempt" in ast.unparse(item.context_expr) for item in node.items)
        self._attempts += attempts
        self.generic_visit(node)
        self._attempts -= attempts

    visit_AsyncWith = visit_With  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        short = name.rpartition(".")[2]
        here = ".".join(self._inside)
        writes = (isinstance(node.func, ast.Attribute) and short in METHODS) or not FUNCTIONS.isdisjoint(
            {short, self._origins.get(name, "")}
        )
        if writes and not self._attempts:
            self.bare.setdefault(here, []).append(node.lineno)
        self._named(short)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._named(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and node.value.startswith(STATEMENTS) and not self._attempts:
            self.bare.setdefault(".".join(self._inside), []).append(node.lineno)

    def _named(self, name: str) -> None:
        if self._attempts:
            self._within.add(name)
        else:
            self.calls.setdefault(".".join(self._inside), set()).add(name)


def test_every_write_of_an_operation_is_within_an_audit_record_or_has_a_reason() -> None:
    found = {f"{module}: {name}" for module in MODULES for name in Writes((PACKAGE / module).read_text()).unrecorded}
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    "line",
    [
        'client.hset("key", "field", "value")',
        'store.command("ALTER TABLE t DELETE WHERE 1")',
        'store.query("ALTER TABLE t DELETE WHERE 1")',
        'insert_json_rows(store, "t", b"", 1)',
        "remove(client, 0, [])",
        "store_run(store, settings, run)",
        "asyncio.run(_later(client))",
    ],
)
def test_the_search_finds_a_write_without_a_record_and_accepts_it_within_one(line: str) -> None:
    head = (
        "from assay_runtime.dead_letters import drop as remove\nasync def _later(client):\n    await client.xdel(1)\n"
    )
    bare = f"{head}def apply(plan, actor):\n    {line}\n"
    recorded = f"{head}def apply(plan, actor):\n    with trail.attempt('x'):\n        {line}\n"
    name = "_later" if "_later" in line else "apply"
    assert name in Writes(bare).unrecorded
    assert name not in Writes(recorded).unrecorded


def _applied() -> Iterator[ModuleType]:
    for module in MODULES:
        if "\ndef apply(" in (source := (PACKAGE / module).read_text()) or "\nasync def apply(" in source:
            yield importlib.import_module("assay_operations." + module.removesuffix(".py").replace("/", "."))


APPLIED = list(_applied())


def test_there_are_as_many_plans_as_operations_that_change_something() -> None:
    assert {module.__name__.removeprefix("assay_operations.") for module in APPLIED} == {
        "api_keys.create", "api_keys.revoke", "api_keys.rotate", "audit_erase", "audit_expire", "audit_key", "dead_letters.drop",
        "dead_letters.requeue", "drift.acknowledge",
        "evaluations.baselines", "evaluations.run_store", "judging.calibrate", "judging.rejudge", "migrate", "prune", "sessions.judging",
    }  # fmt: skip


@pytest.mark.parametrize("module", APPLIED, ids=lambda module: module.__name__)
def test_every_plan_is_frozen_data_and_applied_with_an_actor(module: ModuleType) -> None:
    assert not inspect.iscoroutinefunction(module.apply)
    (plan, actor, *others) = inspect.signature(module.apply).parameters.values()
    assert (plan.name, actor.name, actor.annotation) == ("plan", "actor", Actor)
    assert all(one.kind is one.KEYWORD_ONLY and one.name == "progress" and one.default is None for one in others)
    assert dataclasses.is_dataclass(plan.annotation)
    assert plan.annotation.__dataclass_params__.frozen
    fields = {each.name: str(each.type) for each in dataclasses.fields(plan.annotation)}
    assert fields["data"] == str(Path)
    assert not [
        name for name, kind in fields.items() if any(live in kind for live in ("Client", "Store", "Settings", "Redis"))
    ]


@pytest.mark.parametrize("module", APPLIED, ids=lambda module: module.__name__)
def test_every_plan_is_made_from_the_data_directory(module: ModuleType) -> None:
    planners = [each for name, each in vars(module).items() if name.startswith("plan_") and inspect.isfunction(each)]
    [plan] = planners
    assert "data" in inspect.signature(plan).parameters
    assert not inspect.iscoroutinefunction(plan)
