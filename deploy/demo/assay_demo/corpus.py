"""Corpus of the demo: the documentation of the Python standard library.

Every machine with Python has it.

One document per public module, class, function and documented member. The same interpreter always yields the same
documents in the same order, and a slug that exists in two Python versions names the same thing in both.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay_demo.compiled import SAFE_MODULES, compiled_symbols
from assay_demo.sources import STAR, ModuleSource, Symbol, inherit, parse_module

#: Modules without documentation, not on every machine (tkinter, the test suite), or of another platform (ntpath).
SKIPPED_FOLDERS = frozenset({
    "__phello__", "__pycache__", "_pyrepl", "distutils", "encodings", "ensurepip", "idlelib", "lib-dynload", "lib2to3",
    "pydoc_data", "site-packages", "test", "tests", "tkinter", "turtledemo", "dist-packages",
})  # fmt: skip
SKIPPED_MODULES = frozenset({
    "__hello__", "antigravity", "ntpath", "nturl2path", "sre_compile", "sre_constants", "sre_parse",
    "this", "turtle", "pyexpat", "_pyio", "_py_abc", "_bootlocale", "_aix_support", "_osx_support",
})  # fmt: skip
#: Modules that are public by name only: the functions are documented as those of os.path.
PRIVATE_IN_FACT = frozenset({"genericpath"})
#: Public name of each module that is implemented in another one.
PUBLIC_NAMES = {"posixpath": "os.path", "_collections_abc": "collections.abc"}


@dataclass(frozen=True, slots=True)
class Document:
    """One searchable document.

    `id` is the slug (`json.dumps`), `source_id` the top module (`json`), `chunk_id` a stable hash below 2**31.
    """

    id: str
    source_id: str
    title: str
    text: str
    chunk_id: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents in slug order."""

    documents: tuple[Document, ...]
    by_slug: Mapping[str, Document]

    def __len__(self) -> int:
        return len(self.documents)

    def __contains__(self, slug: object) -> bool:
        return slug in self.by_slug


def load_corpus(stdlib: Path | None = None, *, modules: Collection[str] = ()) -> Corpus:
    """Read the standard library of the running interpreter, in about two seconds.

    `stdlib` is its source folder. With `modules`, only these top modules are read.
    """
    root = stdlib or Path(sysconfig.get_paths()["stdlib"])
    sources = {module.name: module for module in _parse_all(root, modules)}
    found: dict[str, Document] = {}
    written: set[tuple[str, str]] = set()
    # Packages before their submodules, so that what a package re-exports gets its shorter, documented name.
    for name in sorted(set(sources) | set(SAFE_MODULES), key=lambda name: (name.count("."), name)):
        public = PUBLIC_NAMES.get(name, name)
        if _is_private(public) or (modules and public.partition(".")[0] not in modules):
            continue
        for document in _module_documents(public, sources.get(name), sources, written):
            found.setdefault(document.id, document)
    by_slug = {slug: found[slug] for slug in sorted(found)}
    return Corpus(documents=tuple(by_slug.values()), by_slug=by_slug)


def chunk_id(slug: str) -> int:
    """Return a stable identifier of the only chunk of a slug: the first 31 bits of its BLAKE2b hash."""
    return int.from_bytes(hashlib.blake2b(slug.encode(), digest_size=4).digest(), "big") >> 1


def _parse_all(root: Path, modules: Collection[str]) -> Iterator[ModuleSource]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("config-"))
        for file in sorted(files):
            path = Path(folder, file)
            parts = path.relative_to(root).with_suffix("").parts
            if path.suffix != ".py" or parts[0] in SKIPPED_MODULES or parts[-1] == "__main__":
                continue
            if modules and parts[0].removeprefix("_") not in modules:
                continue
            if parts[0].startswith("_sysconfigdata"):  # contains the name of the build machine
                continue
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            yield parse_module(name, path.read_text(encoding="utf-8"), is_package=is_package)


def _module_documents(
    public: str, source: ModuleSource | None, sources: Mapping[str, ModuleSource], written: set[tuple[str, str]]
) -> Iterator[Document]:
    compiled = compiled_symbols(public)
    symbols = _public_symbols(source, sources) if source else {}
    doc = source.doc if source else ""
    if compiled:
        doc = doc or compiled[0]
        for name, symbol in compiled[1].items():
            symbols[name] = _merged(symbols[name], symbol) if name in symbols else symbol
    yield _document(public, Symbol(public, "module", doc=doc, deprecated=source.deprecated if source else ""), symbols)
    exported = source.exports if source else frozenset()
    for name, symbol in sorted(symbols.items()):
        if symbol.home and (symbol.home, symbol.name) in written:
            continue
        written.add((symbol.home, symbol.name))
        home = sources.get(symbol.home)
        if symbol.doc or symbol.deprecated or name in exported or (home and symbol.name in home.exports):
            yield _document(f"{public}.{name}", symbol, symbol.members)
        for member in symbol.members.values():
            yield _document(f"{public}.{name}.{member.name}", member, {})


def _merged(written: Symbol, compiled: Symbol) -> Symbol:
    """Return the documentation of the Python source, with that of the compiled module for what it lacks."""
    merged = inherit(written, compiled)
    return merged if written.signature or written.kind == "class" else compiled if not written.doc else merged


def _public_symbols(
    source: ModuleSource, sources: Mapping[str, ModuleSource], within: frozenset[str] = frozenset()
) -> dict[str, Symbol]:
    """Return the symbols that a module defines, and those it re-exports from its submodules or from private modules."""
    found: dict[str, Symbol] = {}
    within |= {source.name}
    for origin_name, name, here in source.imports:
        origin = sources.get(origin_name)
        own = origin_name.startswith(source.name + ".") or _shares_privately(origin_name, source.name)
        if origin is None or not own or origin_name in within:
            continue
        reexported = _public_symbols(origin, sources, within)
        if name == STAR:
            found.update(
                {key: value for key, value in reexported.items() if not origin.exports or key in origin.exports}
            )
        elif name in reexported and (not source.exports or here in source.exports):
            found[here] = reexported[name]
    scope = {**found, **source.symbols}
    found.update({name: _with_private_bases(symbol, scope, sources, source) for name, symbol in source.symbols.items()})
    # A package may import lazily what it lists (concurrent.futures does): look for it in the submodules.
    children = [module for name, module in sources.items() if name.startswith(source.name + ".")]
    for name in source.exports - found.keys():
        lazy = [child.symbols[name] for child in children if name in child.symbols]
        if len(lazy) == 1:
            found[name] = lazy[0]
    return {name: symbol for name, symbol in found.items() if not name.startswith("_")}


def _with_private_bases(
    symbol: Symbol, scope: Mapping[str, Symbol], sources: Mapping[str, ModuleSource], source: ModuleSource
) -> Symbol:
    """Return a class with the members of its private base classes."""
    for base in symbol.bases:
        known = scope.get(base)
        if known is None:
            origin = next((sources[o] for o, n, here in source.imports if here == base and o in sources), None)
            known = origin.symbols.get(base) if origin and _is_private(origin.name) else None
            if known is not None and origin is not None:
                known = _with_private_bases(known, origin.symbols, sources, origin)
        elif base.startswith("_") and base != symbol.name:
            known = _with_private_bases(known, scope, sources, source)
        else:
            known = None
        if known is not None:
            symbol = inherit(symbol, known)
    return symbol


def _is_private(module: str) -> bool:
    return module in PRIVATE_IN_FACT or any(part.startswith("_") for part in module.split("."))


def _shares_privately(origin: str, module: str) -> bool:
    """Return True if `origin` is private and meant for `module`: a private top module, or one of the same package."""
    package = origin.partition(".")[0]
    return _is_private(origin) and (_is_private(package) or package == module.partition(".")[0])


def _document(slug: str, symbol: Symbol, parts: Iterable[str]) -> Document:
    title = slug.removeprefix("builtins.") + symbol.signature
    lines = [title, _introduction(slug, symbol)]
    if symbol.doc:
        lines += ["", symbol.doc]
    if symbol.bases:
        lines += ["", f"Bases: {', '.join(symbol.bases)}."]
    if symbol.raises:
        lines += ["", f"Raises: {', '.join(symbol.raises)}."]
    if symbol.deprecated:
        lines += ["", f"Deprecated: {symbol.deprecated}"]
    listed = sorted(name for name in parts if not name.startswith("_"))
    if listed:
        lines += ["", f"{'Contents' if symbol.kind == 'module' else 'Members'}: {', '.join(listed)}."]
    return Document(
        id=slug, source_id=slug.partition(".")[0], title=title, text="\n".join(lines), chunk_id=chunk_id(slug)
    )


def _introduction(slug: str, symbol: Symbol) -> str:
    owner = slug.rpartition(".")[0]
    if symbol.kind == "module":
        return "Module of the Python standard library."
    if owner == "builtins":
        return f"Built-in {symbol.kind}."
    return f"{symbol.kind.capitalize()} of {owner.removeprefix('builtins.')}."
