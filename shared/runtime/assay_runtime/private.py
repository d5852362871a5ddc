"""Files that only their owner may read, written safely where other users may have left links."""

import os
from pathlib import Path


def opener(path: str, flags: int) -> int:
    """Opener for `open(...)`: new files get mode 0600, and symbolic links are refused (ELOOP)."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, with mode 0600.

    A link in its place is replaced, never followed.
    """
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)  # left by a killed process, or a link of another user
    try:
        with open(part, "xb", opener=opener) as file:  # Path.open takes no opener
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except FileExistsError:
        raise  # another user's: not ours to remove
    except OSError:
        part.unlink(missing_ok=True)
        raise
