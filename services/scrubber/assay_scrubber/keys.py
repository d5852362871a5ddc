"""Redact the values under the keys that a policy's `scrub_keys` name. Pure."""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=4096)
def key_name(key: str) -> str:
    """Return a key's letters and digits in lower case.

    `customerName`, `Customer-Name` and `customer_name` are all `customername`.
    """
    return "".join(c for c in unicodedata.normalize("NFKC", key).casefold() if c.isalnum())


class RemovedKeys:
    """Redact the values under keys of some names, each as a whole."""

    def __init__(
        self, keys: Iterable[str], family: str, render: Callable[[Any], str], made: Callable[[str], Any]
    ) -> None:
        """Store the key names. `render`: returns the replacement of a value. `made`: true for text that is already a replacement."""
        self._names = frozenset(map(key_name, keys))
        self._family, self._render, self._made = family, render, made

    def take(self, key: object, value: Any) -> bool:
        """Return whether to redact the value under `key`.

        Null is kept, since it contains no information; so is a replacement.
        """
        if not isinstance(key, str) or not self.names(key) or value is None:
            return False
        return not (isinstance(value, str) and self.is_made(value))

    def names(self, key: str) -> bool:
        """Return whether values under `key` are redacted."""
        return key_name(key) in self._names

    def is_made(self, text: str) -> bool:
        """Return whether a text is already a replacement."""
        return bool(self._made(text))

    def shown(self, value: Any) -> str:
        """Return the replacement of a value."""
        return self._render(value)

    def replaced(self, value: Any, counts: Counter[str]) -> str:
        """Count a redacted value, and return its replacement."""
        counts[self._family] += 1
        return self._render(value)


def text_of_any(value: Any) -> str:
    """Serialize a value with sorted keys: equal values have equal hashes."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
