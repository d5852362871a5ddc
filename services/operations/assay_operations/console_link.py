"""Make a link that opens the console, once."""

import time
from pathlib import Path

from assay_access.console_links import KEY_MIN_BYTES, link_token
from assay_operations.clients import secrets_file, settings_for
from assay_operations.errors import OperationError
from assay_schema.settings import ConsoleSettings, Settings


def link(data: Path) -> str:
    """Return a link to the console. It works once, within ten minutes. Raises `OperationError`."""
    return _link(settings_for("console", data))


def way_in_from_file(data: Path) -> str:
    """Return how people open the console that `assay up` started.

    A link that signs in, or the address if people sign in at a proxy.
    """
    from assay_runtime.config import load_settings

    settings = load_settings(secrets_file("console", data))
    if settings.console.auth == "proxy":
        return f"{_address(settings.console)} (people sign in at the proxy: console.auth)"
    return _link(settings)


def _link(settings: Settings) -> str:
    from assay_runtime.config import secret

    console = settings.console
    if console.auth != "local":
        raise OperationError(
            "invalid", 'console.auth is "proxy": people sign in at the proxy', f"open {_address(console)}"
        )
    key = secret(console.session_key, console.session_key_file, "console.session_key_file").encode()
    if len(key) < KEY_MIN_BYTES:
        raise OperationError(
            "invalid",
            "the console and this command share no key",
            f"set console.session_key_file (ASSAY_CONSOLE_SESSION_KEY_FILE) to a file with {KEY_MIN_BYTES} bytes or more",
        )
    return f"{_address(console)}/login?token={link_token(key, time.time())}"


def _address(console: ConsoleSettings) -> str:
    """Return the address at which browsers reach the console."""
    host = f"[{console.listen_host}]" if ":" in console.listen_host else console.listen_host
    return (console.public_url or f"http://{host}:{console.listen_port}").rstrip("/")
