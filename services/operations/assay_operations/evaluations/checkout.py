"""What is checked out where the command runs: the commit, the branch, and whether tracked files were changed since."""

import os
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Checkout:
    """All None outside a checkout; no branch where a commit is checked out by itself, as most CI does, unless CI names it."""

    code_version: str | None
    branch: str | None
    dirty: bool | None


def checkout() -> Checkout:
    """Of the working directory, by git. Files that git does not track make nothing dirty: runs are such files."""
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
