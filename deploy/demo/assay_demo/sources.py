"""Read the documentation in a Python source file without running it.

The whole module is pure: source text in, symbols out. Importing the standard library's modules to read their
docstrings would run their code (some print, some start threads, some open windows); parsing never does.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

STAR = "*"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A class, function or member of a class as declared in its source.

    `raises`: exception names of the `raise` statements in the body. `deprecated`: the text of a deprecation warning in
    the body; empty without one. `members`: the public documented members of a class. `home`: the module of the source.
    """

    name: str
    kind: str
    signature: str = ""
    doc: str = ""
    bases: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    deprecated: str = ""
    members: dict[str, Symbol] = field(default_factory=dict)
    home: str = ""


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """Declarations of a module: its docstring, symbols, `__all__`, and the sources of imported names.

    `imports` contains (module, name, name here) with absolute module names; the name is `*` for a star import.
    """

    name: str
    doc: str
    symbols: dict[str, Symbol]
    exports: frozenset[str]
    imports: tuple[tuple[str, str, str], ...]
    deprecated: str = ""


def parse_module(name: str, source: str, *, is_package: bool = False) -> ModuleSource:
    """Parse the source of a module. Raises `SyntaxError` like `ast.parse`."""
    tree = ast.parse(source)
    symbols: dict[str, Symbol] = {}
    exports: set[str] = set()
    imports: list[tuple[str, str, str]] = []
    loose: list[ast.stmt] = []
    for node in _top_level(tree.body):
        if isinstance(node, ast.ClassDef):
            _keep(symbols, replace(read_class(node), home=name))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            _keep(symbols, replace(read_function(node, kind="function"), home=name))
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(name, node, is_package=is_package)
            imports.extend((origin, alias.name, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            exports.update(_exports(node))
        else:
            loose.append(node)
    return ModuleSource(
        name=name,
        doc=ast.get_docstring(tree) or "",
        symbols=symbols,
        exports=frozenset(exports),
        imports=tuple(imports),
        deprecated=_deprecation(loose),
    )


def read_class(node: ast.ClassDef) -> Symbol:
    """Return a class with its public documented members and the signature of `__init__` without `self`."""
    members: dict[str, Symbol] = {}
    signature = ""
    raises: tuple[str, ...] = ()
    deprecated = ""
    for child in _top_level(node.body):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if child.name == "__init__":
            signature = _signature(child, bound=True)
            raises, deprecated = _raised(child.body), _deprecation(child.body)
        elif not child.name.startswith("_"):
            member = read_function(child, kind="method")
            if member.doc or member.deprecated:
                _keep(members, member)
    return Symbol(
        name=node.name,
        kind="class",
        signature=signature,
        doc=ast.get_docstring(node) or "",
        bases=tuple(ast.unparse(base) for base in node.bases),
        raises=raises,
        deprecated=deprecated,
        members=members,
    )


def read_function(node: ast.FunctionDef | ast.AsyncFunctionDef, *, kind: str) -> Symbol:
    """Return a function or method; `kind` may become property, class or static method, or coroutine."""
    decorators = {ast.unparse(item).rpartition(".")[2] for item in node.decorator_list}
    bound = kind == "method" and "staticmethod" not in decorators
    if decorators & {"property", "cached_property", "setter"}:
        kind = "property"
    elif "classmethod" in decorators:
        kind = "class method"
    elif "staticmethod" in decorators:
        kind = "static method"
    elif isinstance(node, ast.AsyncFunctionDef):
        kind = f"coroutine {kind}"
    return Symbol(
        name=node.name,
        kind=kind,
        signature="" if kind == "property" else _signature(node, bound=bound),
        doc=ast.get_docstring(node) or "",
        raises=_raised(node.body),
        deprecated=_deprecation(node.body),
    )


def inherit(symbol: Symbol, base: Symbol) -> Symbol:
    """Return `symbol` with the members that it inherits from `base`, a base class that is not public."""
    return replace(symbol, members={**base.members, **symbol.members}, doc=symbol.doc or base.doc)


def _keep(symbols: dict[str, Symbol], found: Symbol) -> None:
    # A name defined twice (try/except, if/else, overloads, property setters): the documented one is the one to read.
    known = symbols.get(found.name)
    if known is None or (not known.doc and found.doc):
        symbols[found.name] = found


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body in order, including those in `if` and `try` (platform and accelerator switches)."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _top_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handlers = [statement for handler in node.handlers for statement in handler.body]
            yield from _top_level([*node.body, *handlers, *node.orelse])
        else:
            yield node


def _absolute(module: str, node: ast.ImportFrom, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _exports(node: ast.Assign | ast.AugAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
        return []
    return _strings(node.value)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> str:
    arguments = node.args
    if bound and arguments.posonlyargs:
        arguments = ast.arguments(**{**dict(ast.iter_fields(arguments)), "posonlyargs": arguments.posonlyargs[1:]})
    elif bound:
        arguments = ast.arguments(**{**dict(ast.iter_fields(arguments)), "args": arguments.args[1:]})
    return f"({ast.unparse(arguments)})"


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield every statement of a body and its nested blocks, except those of functions and classes defined in it.

    Expressions, which are most of a tree, are left out: `raise` and a call for its effect are statements.
    """
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from _own_statements(getattr(node, name, []))
        for branch in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield from _own_statements(branch.body)


def _raised(body: list[ast.stmt]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for node in _own_statements(body):
        if isinstance(node, ast.Raise) and node.exc is not None:
            text = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            last = text.rpartition(".")[2]
            if last[:1].isupper():
                names[last] = None
            elif last == "error":
                names[text] = None
    return tuple(names)


def _deprecation(body: list[ast.stmt]) -> str:
    for node in _own_statements(body):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        call = node.value
        called = ast.unparse(call.func)
        if called.endswith("warnings._deprecated"):
            return _scheduled_removal(call)
        if called.endswith("warn"):
            mentioned = {item.id for item in ast.walk(call) if isinstance(item, ast.Name)}
            if mentioned & {"DeprecationWarning", "PendingDeprecationWarning"}:
                return _literal_text(call.args[0]) if call.args else ""
    return ""


def _scheduled_removal(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "remove" and isinstance(keyword.value, ast.Tuple):
            version = ".".join(ast.unparse(part) for part in keyword.value.elts)
            return f"Slated for removal in Python {version}."
    return "Slated for removal."


def _literal_text(node: ast.expr) -> str:
    parts = _strings(node)
    return inspect.cleandoc(" ".join(parts)) if parts else "Warns of its deprecation."


def _strings(node: ast.expr) -> list[str]:
    return [item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)]
