"""What to look for and what to put in its place."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .registry import FAMILIES
from .taxonomy import Category

# Part of the fingerprint: raise it when detection changes, so that rows scrubbed by other rules can be told apart.
RULES_VERSION = 1
DEFAULT_REPLACEMENT = "[REDACTED]"


class PolicyError(ValueError):
    """A policy names something that does not exist. The message lists what does."""


class Action(StrEnum):
    """What happens to a finding."""

    REDACT = "redact"


def _known(kind: str, name: object, valid: Iterable[str]) -> str:
    names = sorted(valid)
    if not isinstance(name, str) or name not in names:
        raise PolicyError(f"unknown {kind} {name!r}; valid: {', '.join(names)}")
    return name


def _default_actions() -> Mapping[Category, Action]:
    return dict.fromkeys(Category, Action.REDACT)


@dataclass(frozen=True, slots=True)
class Policy:
    """A checked policy; build it from configuration with `from_mapping`.

    `families`: names to look for. `actions`: what happens to each category. `scrub_slugs`: also slugs, source
    ids and context ids, which by default count as the producer's own identifiers.
    """

    families: frozenset[str] = frozenset(FAMILIES)
    actions: Mapping[Category, Action] = field(default_factory=_default_actions, hash=False)
    replacement: str = DEFAULT_REPLACEMENT
    scrub_slugs: bool = False

    def __post_init__(self) -> None:
        for name in self.families:
            _known("family", name, FAMILIES)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Policy":
        """Keys `families` (list), `actions` (category to action), `scrub_slugs` (true or false); all optional.

        Raises PolicyError on an unknown key, family, category or action, naming the valid ones.
        """
        for key in values:
            _known("policy setting", key, ("families", "actions", "scrub_slugs"))
        families = values.get("families", list(FAMILIES))
        if isinstance(families, str) or not isinstance(families, Iterable):
            raise PolicyError(f"families must be a list; valid names: {', '.join(sorted(FAMILIES))}")
        slugs = values.get("scrub_slugs", False)
        if not isinstance(slugs, bool):
            raise PolicyError("scrub_slugs must be true or false")
        actions = dict(_default_actions())
        given = values.get("actions", {})
        if not isinstance(given, Mapping):
            raise PolicyError(f"actions must map a category to an action; valid categories: {', '.join(Category)}")
        for category, action in given.items():
            actions[Category(_known("category", category, Category))] = Action(_known("action", action, Action))
        return cls(
            families=frozenset(_known("family", name, FAMILIES) for name in families),
            actions=actions,
            scrub_slugs=slugs,
        )

    @property
    def fingerprint(self) -> str:
        """16 hex digits that differ whenever two policies could scrub a text differently."""
        canonical = json.dumps(
            {
                "rules": RULES_VERSION,
                "families": sorted(self.families),
                "actions": {str(category): str(self.actions[category]) for category in sorted(self.actions)},
                "replacement": self.replacement,
                "scrub_slugs": self.scrub_slugs,
            },
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]
