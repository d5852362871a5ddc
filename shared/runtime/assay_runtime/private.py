"""Files that only their owner may read, written where others may have left links."""

import os
from pathlib import Path


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=...)`: a new file is 0600 whatever the umask says, and a symbolic link is refused (ELOOP)."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, 0600. A link in its place is replaced, never followed."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)  # a killed process's, or a link that somebody put there
    try:
        with open(part, "xb", opener=opener) as file:  # Path.open takes no opener
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except FileExistsError:
        raise  # another's: not ours to remove
    except OSError:
        part.unlink(missing_ok=True)
        raise
