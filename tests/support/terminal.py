"""Run a command on a pseudo-terminal, as a person does."""

import contextlib
import os
import pty
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

#: Text with terminal commands: clear screen, title (OSC), C1 CSI, bidirectional override, clipboard, invisible characters.
HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x9b2Jd\u202ee\u2066f\x1b]52;c;ZXZpbA==\x07g\u200bh"
#: Rich's colours: the only escape sequences that may remain.
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    typed: str = "",
    exit_codes: Collection[int] | None = None,
) -> str:
    """Return the command's terminal output, stdout and stderr together.

    `typed`: the input that a person types; `exit_codes`: the expected exit codes, None for any.
    """
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            arguments, cwd=directory, env={**environment, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs
        )
    finally:
        os.close(theirs)
    os.write(ours, typed.encode())
    written = b""
    with contextlib.suppress(OSError):  # EIO: the last writer has left
        while piece := os.read(ours, 65_536):
            written += piece
    os.close(ours)
    code = process.wait(60)
    assert exit_codes is None or code in exit_codes, (code, written.decode())
    return written.decode()


def commands_in(written: str) -> set[str]:
    """Return a text's terminal commands and invisible or reversing characters, except Rich's styles."""
    return {each for each in _STYLES.sub("", written) if not each.isprintable() and each not in "\n\r\t"}
