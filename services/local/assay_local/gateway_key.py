"""The key in the line that `assay up` prints for curl, kept in a file for its owner only.

It is made once. The key itself is on no command line and in no output, where others could see it.
"""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay_access.api_keys import KeyState, fits, id_of, records_in
from assay_access.secrets import write_private
from assay_local.processes import LocalStack
from assay_local.supervisor import Supervisor
from assay_operations.errors import OperationError
from assay_schema.streams import api_keys_key

#: File below the data directory, for `curl -K`.
FILE = "secrets/gateway.curl"


async def keep_gateway_key(system: LocalStack, supervisor: Supervisor) -> None:
    """Write the file for curl, with a new key unless the one in it is still valid.

    Raises `OperationError` if no key can be made.
    """
    if (kept := key_in(system.data)) and await _is_valid(system, kept):
        return
    child = await supervisor.run(system.new_key(os.environ))
    try:
        key = str(json.loads(child.answer)["key"])
    except (ValueError, KeyError, TypeError):
        raise OperationError("unavailable", f"no key could be made for the gateway{child.last_lines()}") from None
    headers = (f"Authorization: Bearer {key}", "Content-Type: application/json")
    write_private(system.data / FILE, "".join(f'header = "{header}"\n' for header in headers))


def key_in(data: Path) -> str:
    """Return the key in the file; empty without one."""
    try:
        found = re.search(r"Bearer (\S+?)\"", (data / FILE).read_text())
    except OSError:
        return ""
    return found[1] if found else ""


async def _is_valid(system: LocalStack, key: str) -> bool:
    client = system.redis_client("operator")
    try:
        fields: Any = await client.hgetall(api_keys_key())  # redis-py's types do not say that they are bytes
        record = records_in(fields).get(id_of(key) or "")
    finally:
        await client.aclose()
    return record is not None and fits(key, record) and record.state(datetime.now(UTC)) is KeyState.LIVE
