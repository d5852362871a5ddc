"""Find keys of more vendors with an external catalogue: the extra `assay-scrubber[kingfisher]`.

Its findings are named `api_key`, like those of our own prefixes, so policies treat both alike. It runs inside this process and contacts no
server. Its rules are compiled once for a process, and stored in a directory of the user's cache.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

PACKAGE = "kingfisher-secret-scanner"
INSTALL = "looking for keys of more vendors needs kingfisher in the environment that runs assay: pip install 'assay-scrubber[kingfisher]'"

#: Finds keys in a projected text: (start, end) of each. Safe to share between threads.
Finder = Callable[[bytes], list[tuple[int, int]]]


class VendorKeysError(RuntimeError):
    """The catalogue is not installed. The message says what to install."""


def catalogue() -> str:
    """Return the name and version of the installed catalogue, for a policy's fingerprint.

    Raises VendorKeysError.
    """
    try:
        return f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:
        raise VendorKeysError(INSTALL) from None


@lru_cache(maxsize=1)
def finder() -> Finder:
    """Return the finder of the installed catalogue.

    The first call compiles or loads its rules. Raises VendorKeysError.
    """
    try:
        from kingfisher_sdk import Rules, Scanner
    except ImportError:
        raise VendorKeysError(INSTALL) from None
    return finder_of(Scanner(Rules(), base64=False, redact=True).scan)


def finder_of(scan: Callable[[bytes], list[object]]) -> Finder:
    """Return a finder that asks kingfisher's `Scanner.scan`.

    Findings of its helpers, which it calls invisible, are not keys.
    """

    def find(raw: bytes) -> list[tuple[int, int]]:
        places = [finding.location for finding in scan(raw) if finding.visible]  # type: ignore[attr-defined]
        return [(place["start_offset"], place["end_offset"]) for place in places]

    return find
