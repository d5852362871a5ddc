"""Read the documentation of modules written in C by inspecting those whose import only defines names."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

from assay_demo.sources import Symbol

#: Modules that are safe to import: they print nothing, start nothing, and most programs load them anyway.
#: A module that the interpreter was built without (sqlite3, bz2, lzma, ssl) is omitted.
SAFE_MODULES = (
    "array", "atexit", "binascii", "bisect", "builtins", "bz2", "cmath", "collections", "contextvars", "copyreg", "csv",
    "datetime", "decimal", "errno", "faulthandler", "fcntl", "functools", "gc", "grp", "hashlib", "heapq", "hmac", "io",
    "itertools", "json", "locale", "lzma", "marshal", "math", "mmap", "operator", "os", "pickle", "pwd", "random", "re",
    "resource", "secrets", "select", "signal", "socket", "sqlite3", "ssl", "stat", "statistics", "string", "struct",
    "symtable", "sys", "syslog", "threading", "time", "tracemalloc", "types", "typing", "unicodedata", "uuid",
    "warnings", "weakref", "zlib",
)  # fmt: skip

_MAX_SIGNATURE = 300


def compiled_symbols(module_name: str) -> tuple[str, dict[str, Symbol]] | None:
    """Return the docstring and public symbols of a safe module; None if this interpreter lacks it."""
    if module_name not in SAFE_MODULES:
        return None
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        return None
    symbols = {}
    for name in _public_names(module):
        value = _original(module, name)
        found = None if _is_alias(module, name, value) else _symbol(name, value)
        if found is not None:
            symbols[name] = found
    return inspect.getdoc(module) or "", symbols


def _is_alias(module: ModuleType, name: str, value: object) -> bool:
    """Return True if a class is documented under another name, as `typing.Text` under `str`."""
    if not inspect.isclass(value):
        return False
    foreign = value.__module__ == "builtins" != module.__name__
    return foreign or (value.__name__ != name and vars(module).get(value.__name__) is value)


def _public_names(module: ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(name for name in listed if not name.startswith("_"))
    homes = {module.__name__, "_" + module.__name__, "posix", "_io", "_thread"}
    names = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if getattr(_original(module, name), "__module__", module.__name__) in homes]


def _original(module: ModuleType, name: str) -> object:
    """Return the original value of a name: that of a hook which programs replace (`sys.excepthook`) is `__name__`."""
    return vars(module).get(f"__{name}__") or getattr(module, name, None)


def _symbol(name: str, value: object) -> Symbol | None:
    if inspect.isclass(value):
        members = {}
        for key, raw in sorted(_own_and_hidden(value).items()):
            member = None if key.startswith("_") else _member(key, raw)
            if member is not None:
                members[key] = member
        bases = tuple(base.__name__ for base in value.__bases__ if base is not object)
        return Symbol(name, "class", _text_signature(value), _doc(value), bases, members=members)
    if callable(value) and (inspect.isroutine(value) or hasattr(value, "__wrapped__")):
        return Symbol(name, "function", _text_signature(value), inspect.getdoc(value) or "")
    return None


def _own_and_hidden(value: type) -> dict[str, object]:
    """Return the attributes of a class and of its private bases.

    Readers know `socket.socket`, not `_socket.socket`.
    """
    found: dict[str, object] = {}
    for base in reversed(value.__mro__):
        if base is value or base.__module__ in {f"_{value.__module__}", "_io"} or base.__name__.startswith("_"):
            found.update(vars(base))
    return found


def _member(name: str, raw: object) -> Symbol | None:
    kind = "class method" if isinstance(raw, classmethod) or inspect.isbuiltin(raw) else "method"
    if isinstance(raw, staticmethod):
        kind = "static method"
    elif inspect.isdatadescriptor(raw):
        kind = "property"
    elif not (inspect.isroutine(raw) or isinstance(raw, classmethod)):
        return None
    doc = _doc(raw)
    if not doc:
        return None
    return Symbol(name, kind, "" if kind == "property" else _text_signature(raw), doc)


def _doc(value: object) -> str:
    doc = getattr(value, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def _text_signature(value: object) -> str:
    text = getattr(value, "__text_signature__", None)
    if not isinstance(text, str) or len(text) > _MAX_SIGNATURE:
        return ""
    for first in ("$self, ", "$module, ", "$type, ", "$cls, ", "$self", "$module", "$type", "$cls"):
        text = text.replace("(" + first, "(")
    return "(" + text[1:].removeprefix("/, ").removeprefix("/)").removeprefix(", ").rstrip(")") + ")"
