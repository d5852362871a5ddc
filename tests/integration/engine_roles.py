"""The embedded engine as a judge of ClickHouse users files: it reads them, and one connection takes each user's rights and profile.

The engine lets nobody log in: it has one user. So a user of the file becomes a role with the same grants, under the same profile,
and the engine then checks every access as a server would. Run as a program it answers JSON lines: it must be alone in its process.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

#: The one role that is not in the file: it may look at everything.
ADMIN = "admin"
#: The engine reads no `access_control_improvements`, which this constraint needs.
ONLY_ON_A_SERVER = "<changeable_in_readonly/>"
#: What a user's profile sets; `readonly` last, since nothing can be set after it.
PROFILE_SETTINGS = (
    "SELECT setting_name, value FROM system.settings_profile_elements"
    " WHERE profile_name = 'assay_{}' AND value IS NOT NULL ORDER BY setting_name = 'readonly'"
)


class EngineError(Exception):
    """What the engine refused. `code` is its own."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = re.search(r"Code: (\d+)", message)
        self.code = int(found[1]) if found else 0


class EngineWithUsers:
    """A child process with the engine, configured by the files of a deployment."""

    def __init__(self, directory: Path, users: Path, passwords: str, config: Path) -> None:
        text = users.read_text()
        assert ONLY_ON_A_SERVER in text
        self.users = [user.tag for user in ET.fromstring(text).findall("users/*")]  # noqa: S314  # a file of this repository
        for folder in ("users.d", "config.d"):
            (directory / folder).mkdir()
        (directory / "config.xml").write_text(
            f"<clickhouse><users_config>{directory}/users.xml</users_config></clickhouse>"
        )
        (directory / "config.d/assay.xml").write_text(config.read_text())
        (directory / "users.xml").write_text(_users_xml(text))
        (directory / "users.d/assay.xml").write_text(text.replace(ONLY_ON_A_SERVER, ""))
        (directory / "users.d/passwords.xml").write_text(passwords)
        self._log = (directory / "engine.log").open("w+")
        command = [sys.executable, __file__, f"{directory}/data?config-file={directory}/config.xml"]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )

    def run(self, user: str, sql: str) -> str:
        """Tab-separated rows of a statement as one of the users. Raises `EngineError`."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps([user, sql]) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the engine ended: {self._log.read()[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return str(answer["rows"])

    def code(self, user: str, sql: str) -> int | None:
        """The engine's error code for a statement, or None when it is carried out."""
        try:
            self.run(user, sql)
        except EngineError as error:
            return error.code
        return None

    def stop(self) -> None:
        """End the child."""
        self._child.communicate(timeout=60)
        self._log.close()


def _users_xml(deployed: str) -> str:
    users = ET.fromstring(deployed).findall("users/*")  # noqa: S314
    grants = {user.tag: [str(query.text) for query in user.findall("grants/query")] for user in users}
    grants[ADMIN] = ["GRANT ALL ON *.*"]
    roles = "".join(
        f"<as_{name}><grants>{''.join(f'<query>{escape(query)}</query>' for query in queries)}</grants></as_{name}>"
        for name, queries in grants.items()
    )
    everybody = ", ".join(f"as_{name}" for name in grants)
    return (
        "<clickhouse><profiles><default/></profiles><quotas><default/></quotas>"
        f"<roles>{roles}</roles><users><default><password></password><profile>default</profile><quota>default</quota>"
        f"<grants><query>GRANT {everybody}</query></grants></default></users></clickhouse>"
    )


def _answer(address: str) -> None:
    from chdb import _chdb

    connections: dict[str, Any] = {}
    connect: Any = _chdb.connect  # type: ignore[attr-defined]

    def query(connection: Any, sql: str) -> str:
        return bytes(connection.query(sql, "TabSeparated", params={}).bytes()).decode()

    def connected(user: str) -> Any:
        connection = connect(address)
        query(connection, f"SET ROLE as_{ADMIN}")
        settings = query(connection, PROFILE_SETTINGS.format(user)).splitlines()
        query(connection, f"SET ROLE as_{user}")
        if user != ADMIN:
            query(connection, f"SET profile = 'assay_{user}'")  # its constraints; the engine leaves its values aside
        for name, value in (line.split("\t") for line in settings):
            query(connection, f"SET {name} = '{value}'")
        return connection

    for line in sys.stdin:
        user, sql = json.loads(line)
        try:
            if user not in connections:
                connections[user] = connected(user)
            answer = {"rows": query(connections[user], sql)}
        except RuntimeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _answer(sys.argv[1])
