"""Check the rights of services and of the owner on the tables of the audit log.

Services read it, the auditor also inserts, and the owner deletes rows and disclosures that expire or are erased.

A ClickHouse server lists them in its system tables. In the embedded store rights are constants of its code, and no statement changes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay_access.identities import STORE_IDENTITIES

if TYPE_CHECKING:
    from assay_runtime.store import Client

TABLES = ("audit_rows", "audit_leaves", "audit_disclosures", "audit_checkpoints", "audit_anchors")
#: The identity that creates tables and deletes rows: a person's, not a service's.
OWNER = "owner"
#: Tables whose rows the owner deletes, to expire or to erase them. In the others it may only insert and add columns.
DELETED_BY_OWNER = ("audit_rows", "audit_disclosures")
_OF_OWNER = (
    "INSERT", "ALTER ADD COLUMN", "ALTER COMMENT COLUMN", "CREATE", "DROP VIEW", "ALTER VIEW",
    "ALTER DATABASE SETTINGS", "ALTER MODIFY DATABASE COMMENT",
)  # fmt: skip
_INSERTS = "auditor"
_READING = ("SELECT", "SHOW", "CHECK", "dictGet")
#: Levels of rights on tables, and the group of rights by which a user gives rights to others or becomes another.
_LEVELS, _MANAGEMENT = ("COLUMN", "TABLE", "VIEW", "DATABASE"), "ACCESS MANAGEMENT"
#: The right to let a view read and write as another user.
_DEFINER = "SET DEFINER"
_NO_RIGHT, _NO_COLUMN = 497, 47

_GRANTED = (
    "SELECT coalesce(user_name, role_name, ''), toString(access_type), database, table, column, is_partial_revoke = 1, {} = 1 "
    "FROM system.grants ORDER BY ALL"
)
#: A server before 26.3 does not say which names are only the beginning of one: there, each is taken for one.
GRANTED, GRANTED_BEFORE = _GRANTED.format("is_wildcard"), _GRANTED.format("1")
MEMBERS = "SELECT coalesce(user_name, role_name, ''), granted_role_name FROM system.role_grants ORDER BY ALL"
RIGHTS = "SELECT toString(privilege), toString(level), toString(parent_group) FROM system.privileges ORDER BY ALL"


@dataclass(frozen=True)
class Granted:
    """A right of a user or role, or one that is taken back. Without a database or table: all of them."""

    holder: str
    right: str
    database: str | None
    table: str | None
    column: str | None = None
    is_revoked: bool = False
    #: True if the last name is only the beginning of one.
    is_prefix: bool = False

    def covers(self, database: str, table: str) -> bool:
        """True if it is about a table, all of its columns or some."""
        if self.database is None:
            return True
        if self.right == _DEFINER:  # of a user, not of a database
            return self.database == OWNER
        if self.table is None:
            return database.startswith(self.database) if self.is_prefix else database == self.database
        return database == self.database and (table.startswith(self.table) if self.is_prefix else table == self.table)


class Rights:
    """The tree of rights: a group contains others."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._level = {str(name): str(level or "") for name, level, _ in rows}
        self._parent = {str(name): str(parent or "") for name, _, parent in rows}
        self._inner: dict[str, list[str]] = {}
        for name, parent in self._parent.items():
            self._inner.setdefault(parent, []).append(name)

    def single(self, name: str) -> list[str]:
        """Return the single rights of a group; of a single right, itself."""
        inner = self._inner.get(name, [])
        return [each for part in inner for each in self.single(part)] if inner else [name]

    def changes(self, name: str, also: tuple[str, ...]) -> bool:
        """True if a single right may change the log, or give such a right to a user.

        `also`: the beginnings of rights that are no more than needed, in addition to those to read.
        """
        if name.startswith((*_READING, *also)):
            return False
        if name not in self._level:  # of a newer server: better reported than missed
            return True
        return self._level[name] in _LEVELS or name == _DEFINER or self._is_in(name, _MANAGEMENT)

    def _is_in(self, name: str, group: str) -> bool:
        while name and name != group:
            name = self._parent.get(name, "")
        return name == group


def too_wide(
    granted: Sequence[Granted], members: Sequence[tuple[str, str]], rights: Rights, databases: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Return each identity that may change the log more than it needs to, with those rights. Pure.

    `members`: users or roles with a role that they have. `databases`: of the tables, and of the views. The owner may replace views, and
    change the tables of which it deletes rows.
    """
    roles: dict[str, list[str]] = {}
    for holder, role in members:
        roles.setdefault(holder, []).append(role)
    for identity in STORE_IDENTITIES:
        holders = _holders(identity.name, roles)
        own = [each for each in granted if each.holder in holders]
        is_owner = identity.name == OWNER
        also = _OF_OWNER if is_owner else ("INSERT",) if identity.name == _INSERTS else ()
        found = {
            f"{right} ON {database}.{table}"
            for database in (databases[:1] if is_owner else databases)
            for table in TABLES
            if not (is_owner and table in DELETED_BY_OWNER)
            for right in _changing(own, rights, database, table, also)
        }
        if found:
            yield identity.name, ", ".join(sorted(found))


def _holders(name: str, roles: Mapping[str, list[str]]) -> set[str]:
    found, todo = set[str](), [name]
    while todo:
        holder = todo.pop()
        if holder not in found:
            found.add(holder)
            todo += roles.get(holder, [])
    return found


def _changing(own: Sequence[Granted], rights: Rights, database: str, table: str, also: tuple[str, ...]) -> set[str]:
    """Return the granted rights, groups by their name, that may change a table. A revoked right counts for its own holder."""
    found = set[str]()
    for each in own:
        if each.is_revoked or not each.covers(database, table):
            continue
        taken = {
            single
            for other in own
            if other.is_revoked
            and other.holder == each.holder
            and other.column is None
            and other.covers(database, table)
            for single in rights.single(other.right)
        }
        left = [single for single in rights.single(each.right) if single not in taken]
        if any(rights.changes(single, also) for single in left):
            found.add(each.right)
    return found


def wider_grants(client: "Client", databases: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """Return the result of `too_wide` for a store, and why the rights are not known.

    The reason is empty if they are known, or if they cannot be changed there.
    """
    from clickhouse_connect.driver.exceptions import DatabaseError

    try:
        granted = _granted(client)
        members, rights = (client.query(query).result_rows for query in (MEMBERS, RIGHTS))
    except DatabaseError as error:
        if getattr(error, "code", None) != _NO_RIGHT:
            raise
        is_embedded = "is not allowed" in str(error)  # its own words; a server names the grant that is missing
        return [], "" if is_embedded else "the rights on the log are not checked: this user cannot read system.grants"
    found = too_wide(
        [Granted(*row) for row in granted], [(holder, role) for holder, role in members], Rights(rights), databases
    )
    return list(found), ""


def _granted(client: "Client") -> Sequence[Sequence[Any]]:
    from clickhouse_connect.driver.exceptions import DatabaseError

    try:
        return client.query(GRANTED).result_rows
    except DatabaseError as error:
        if getattr(error, "code", None) != _NO_COLUMN:
            raise
        return client.query(GRANTED_BEFORE).result_rows
