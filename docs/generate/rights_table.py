#!/usr/bin/env python3
"""The table "Who may do what" of docs/security.md, from what production uses: identities, grants of both kinds of store.

`python -m docs.generate.rights_table` prints the document; `--write` puts it in docs/, `--check` exits 1 when that file is not current.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

from assay_access.identities import IDENTITIES, Grant, Identity
from assay_schema.streams import PREFIX
from assay_store.roles import GRANTS
from docs.generate.keep import keep

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "security.md"
SERVER = ROOT / "deploy" / "clickhouse" / "users.d" / "assay.xml"
BEGIN, END = "<!-- begin: made by make docs -->\n", "<!-- end -->\n"

#: Every command that an identity is granted on keys, by what it amounts to. A command that is missing here stops the generator.
_MEANS = {
    "appends": "xadd rpush",
    "reads": "xread xrange xrevrange xreadgroup get hget hmget hgetall hkeys hlen hscan hexists zcard zscore zmscore zrange"
    " zrangebyscore lindex",
    "acknowledges": "xack xclaim xautoclaim xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|setid",
    "deletes": "xdel xtrim del hdel zrem zremrangebyscore zremrangebyrank lpop",
    "writes": "set hset hsetnx hincrby incrby decrby pexpire expire persist zadd xsetid",
    "counts": "xlen xpending xinfo|stream xinfo|groups xinfo|consumers memory|usage",
    "": "eval evalsha",  # inside a script Redis asks for the other rights
}
_VERB = {command: verb for verb, commands in _MEANS.items() for command in commands.split()}


#: Without a key: what every service uses.
_COMMON = {"time", "info", "wait", "script|load", "script|exists"}


def _in_redis(grants: Iterable[Grant]) -> str:
    found: dict[str, set[str]] = {}
    others = [command for grant in grants if not grant.keys for command in grant.commands if command not in _COMMON]
    for grant in grants:
        for key in grant.keys:
            name = key.removeprefix(f"{PREFIX}:{{0}}:")
            found.setdefault(name, set()).update(_VERB[command] for command in grant.commands)
    verbs: dict[str, list[str]] = {}
    for name, does in found.items():
        told = [verb for verb in _MEANS if verb in does and verb]
        # Who reads a stream may count it.
        told = [verb for verb in told if verb != "counts" or told == ["counts"]]
        if told:
            verbs.setdefault(", ".join(told), []).append(f"`{name}`")
    lines = [f"{does} {', '.join(names)}" for does, names in verbs.items()]
    lines += ["runs " + ", ".join(f"`{command.replace('|', ' ').upper()}`" for command in others)] if others else []
    return "<br>".join(lines) or "no user"


def _grants(texts: Iterable[str]) -> str:
    told = [text.removeprefix("GRANT ") for text in texts if "TABLE ENGINE" not in text]
    return "<br>".join(f"`{text}`" for text in told)


def _of_server(name: str) -> list[str]:
    return [query.text or "" for query in ET.parse(SERVER).iterfind(f"users/{name}/grants/query")]  # noqa: S314  ours


def _row(identity: Identity) -> str:
    role = identity.store_role
    stores = (_grants(_of_server(role)), _grants(GRANTS[role])) if role else ("no user", "no user")
    return f"| `{identity.name}` | {identity.purpose} | {_in_redis(identity.grants)} | {stores[0]} | {stores[1]} |\n"


def table() -> str:
    """The table."""
    head = "| identity | | in Redis | in a ClickHouse server | in the embedded store |\n|---|---|---|---|---|\n"
    return head + "".join(map(_row, IDENTITIES))


def document() -> str:
    """docs/security.md with the table of now."""
    text = DOCUMENT.read_text("utf-8")
    found, times = re.subn(f"(?s)({re.escape(BEGIN)}).*?({re.escape(END)})", lambda at: at[1] + table() + at[2], text)
    if times != 1:
        raise ValueError(f"{DOCUMENT} has no place for the table")
    return found


if __name__ == "__main__":
    sys.exit(keep({DOCUMENT: document()}, sys.argv[1:], "python -m docs.generate.rights_table"))
