"""Programs that some tests need and a bare machine lacks. Run as a script: the Debian packages that are missing here, for `.ci/run`."""

import shutil

#: Names a program goes by, and the Debian package that has it.
DEBIAN = {
    ("redis-server",): "redis-server",
    ("prometheus",): "prometheus",
    ("promtool",): "prometheus",
    ("amtool",): "prometheus-alertmanager",
    ("prometheus-alertmanager", "alertmanager"): "prometheus-alertmanager",
    ("chromium", "chromium-browser", "google-chrome"): "chromium",
    ("curl",): "curl",
    ("cc",): "build-essential",
    ("jq",): "jq",
    ("openssl",): "openssl",
    ("nginx",): "nginx-light",
}

#: Coding agents that Debian has no package of, and the npm package of each. Tests with them run where they are installed.
NPM = {
    "opencode": "opencode-ai",
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
}


def found(name: str) -> str | None:
    """The path of a program of the table, whichever of its names it has here."""
    names = next(names for names in DEBIAN if name in names)
    return next(filter(None, map(shutil.which, names)), None)


def lacking(name: str) -> str:
    """Why a test that needs this program is skipped."""
    return f"needs {name} (Debian: {next(package for names, package in DEBIAN.items() if name in names)})"


def needed(name: str) -> str:
    """The path of a program; where it is not installed, the test is skipped."""
    path = found(name)
    if path is None:
        import pytest  # .ci/run has none yet

        pytest.skip(lacking(name))
    return path


def lacking_agent(name: str) -> str:
    """Why a test that needs this agent is skipped."""
    return f"needs {name} (npm: {NPM[name]})"


def needed_agent(name: str) -> str:
    """The path of a coding agent; where it is not installed, the test is skipped."""
    path = shutil.which(name)
    if path is None:
        import pytest

        pytest.skip(lacking_agent(name))
    return path


if __name__ == "__main__":
    print(*sorted({package for names, package in DEBIAN.items() if not found(names[0])}))
