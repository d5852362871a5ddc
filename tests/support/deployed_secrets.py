"""Write the secrets of a deployment, as its operator does."""

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_access.secrets import Passwords

ROOT = Path(__file__).parents[2]


def make_secrets(directory: Path) -> "Passwords":
    """Run the command that makes a deployment's secrets."""
    passwords: Passwords = runpy.run_path(str(ROOT / "deploy/make_secrets.py"))["write_secrets"](directory)
    return passwords
