"""The status line."""

import os
from dataclasses import fields
from pathlib import Path

from assay_access.identities import REDIS_IDENTITIES, STORE_IDENTITIES
from assay_access.secrets import Passwords
from assay_access.settings_files import Ports
from assay_local.preflight import RedisBinary
from assay_local.processes import LocalStack
from assay_local.status_line import Status
from assay_local.supervisor import Spec, Supervisor
from tests.support.ports import free_port


async def test_the_status_line_says_what_is_away_and_never_fails(tmp_path: Path) -> None:
    closed = free_port()
    passwords = Passwords(
        {identity.name: "x" for identity in REDIS_IDENTITIES}, {identity.name: "x" for identity in STORE_IDENTITIES}
    )
    ports = Ports(*[closed] * len(fields(Ports)))
    system = LocalStack(tmp_path, ports, RedisBinary("redis-server", (7, 0)), passwords)
    spec = Spec("writer", ("true",), os.environ)
    supervisor = Supervisor([[spec]], on_line=print, announce=print, on_change=print)
    admin = system.redis_client("admin")
    try:
        line = await Status(system, supervisor, admin).line()
    finally:
        await admin.aclose()
    assert line.startswith("up 0:00 | Redis does not answer | store does not answer | ")
    assert line.endswith(" MB")
