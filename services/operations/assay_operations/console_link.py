"""Make a link that opens the console, once."""

import time
from pathlib import Path

from assay_access.console_links import KEY_MIN_BYTES, link_token
from assay_operations.clients import secrets_file, settings_for
from assay_operations.errors import OperationError
from assay_schema.settings import Settings


def link(data: Path) -> str:
    """Return a link to the console. It works once, within ten minutes. Raises `OperationError`."""
    return _link(settings_for("console", data))


def link_from_file(data: Path) -> str:
    """Return a link to the console that `assay up` started with this data directory."""
    from assay_runtime.config import load_settings

    return _link(load_settings(secrets_file("console", data)))


def _link(settings: Settings) -> str:
    from assay_runtime.config import secret

    console = settings.console
    if console.auth != "local":
        raise OperationError(
            "invalid", 'console.auth is "proxy": people sign in at the proxy', "open the address of the proxy"
        )
    key = secret(console.session_key, console.session_key_file, "console.session_key_file").encode()
    if len(key) < KEY_MIN_BYTES:
        raise OperationError(
            "invalid",
            "the console and this command share no key",
            f"set console.session_key_file (ASSAY_CONSOLE_SESSION_KEY_FILE) to a file with {KEY_MIN_BYTES} bytes or more",
        )
    host = f"[{console.listen_host}]" if ":" in console.listen_host else console.listen_host
    address = (console.public_url or f"http://{host}:{console.listen_port}").rstrip("/")
    return f"{address}/login?token={link_token(key, time.time())}"
