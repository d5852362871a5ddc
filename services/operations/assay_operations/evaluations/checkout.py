"""The commit and branch of the working directory, and whether tracked files have changes."""

import os
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Checkout:
    """A git checkout; all None outside of one.

    For a detached HEAD, as in most CI, the branch is that of the CI variables.
    """

    code_version: str | None
    branch: str | None
    dirty: bool | None


def checkout() -> Checkout:
    """Read the checkout of the working directory from git. Untracked files, such as runs, are not dirty."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return Checkout(None, None, None)
    changes = _git("status", "--porcelain", "--untracked-files=no")
    branch = _git("symbolic-ref", "--quiet", "--short", "HEAD")
    named = (
        os.environ.get("GITHUB_HEAD_REF") or os.environ.get("GITHUB_REF_NAME") or os.environ.get("CI_COMMIT_REF_NAME")
    )
    return Checkout(commit, branch or named or None, None if changes is None else bool(changes))


def _git(*arguments: str) -> str | None:
    try:
        found = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None
