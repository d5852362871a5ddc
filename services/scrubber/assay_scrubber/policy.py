"""Define the policy of one project: which families are searched for, and the action for each."""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .family import Family
from .keys import key_name
from .registry import FAMILIES, SCRUB_KEY, WITHOUT_RULES
from .taxonomy import Category

# Part of the fingerprint: raise it when detection changes, so that rows scrubbed by other rules can be distinguished.
RULES_VERSION = 8
DEFAULT_REPLACEMENT = "[REDACTED]"
#: Never stored unchanged, under any policy.
FLOOR = frozenset({Category.CREDENTIAL, Category.PAYMENT_CARD, Category.GOVERNMENT_ID})
#: Shorter keys could be guessed from a few hashes.
HASH_KEY_MIN_BYTES = 16
POLICY_KEYS = ("actions", "families", "scrub_keys", "scrub_slugs")


class PolicyError(ValueError):
    """A policy names something unknown or asks for something impossible.

    The message lists what is valid.
    """


class Action(StrEnum):
    """An action on a finding."""

    REDACT = "redact"
    """Replace it with `[REDACTED]`."""
    LABEL = "label"
    """Replace it with its family: `[EMAIL]`."""
    HASH = "hash"
    """Replace it with its family and a keyed hash, the same for the same value: `[EMAIL:...]`."""
    REFUSE = "refuse"
    """Do not store the event; its failure row lists the categories that were found."""
    ALLOW = "allow"
    """Keep it, and count it as `attempted`. Never for the categories of `FLOOR`."""


def known(kind: str, name: object, valid: Iterable[str]) -> str:
    """Return `name` if it is valid; otherwise raise PolicyError that lists the valid names."""
    names = sorted(valid)
    if not isinstance(name, str) or name not in names:
        raise PolicyError(f"unknown {kind} {name!r}; valid: {', '.join(names)}")
    return name


def _check_replacement(text: str) -> None:
    if not text.isprintable() or any(mark in text for mark in '"\\'):
        raise PolicyError(
            "replacement: quotes, backslashes and control characters are not allowed, because they would break JSON"
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """A checked policy.

    Build it from configuration with `from_mapping`, or from a file with `policy_file`.

    `families`: names to search for; a configuration cannot exclude any, it can only allow their findings.
    `actions`: by family; `redact` for families that it does not list.
    `custom`: the policy's own families.
    `hash_key`: needed by `hash`.
    `scrub_slugs`: also scrub slugs, source IDs and context IDs, which by default count as the producer's own identifiers.
    `scrub_keys`: names of keys of JSON objects whose values are always redacted as a whole; spelling (`customer_name`, `customerName`) does
    not matter.
    `catalogue`: the catalogue of vendors' keys to search in addition to the families, as named by `vendor_keys.catalogue`; empty: none.
    Raises PolicyError.
    """

    families: frozenset[str] = frozenset(FAMILIES)
    actions: Mapping[str, Action] = field(default_factory=dict, hash=False)
    custom: tuple[Family, ...] = ()
    hash_key: bytes | None = field(default=None, repr=False)
    replacement: str = DEFAULT_REPLACEMENT
    scrub_slugs: bool = False
    scrub_keys: frozenset[str] = frozenset()
    catalogue: str = ""

    def __post_init__(self) -> None:
        _check_replacement(self.replacement)
        for name in self.families:
            known("family", name, FAMILIES)
        for family in self.custom:
            if family.name in FAMILIES or family.name in WITHOUT_RULES:
                raise PolicyError(f"pattern {family.name}: this is the name of a built-in family; choose another")
        members = {family.name: family for family in (*FAMILIES.values(), *WITHOUT_RULES.values(), *self.custom)}
        if len(members) != len(FAMILIES) + len(WITHOUT_RULES) + len(self.custom):
            raise PolicyError("two patterns have the same name")
        for name, action in self.actions.items():
            category = members[known("family", name, members)].category
            if action is Action.ALLOW and category in FLOOR:
                raise PolicyError(f"{name} is of category {category}, which can never be allowed ({_floor()})")
            if action is Action.ALLOW and name == SCRUB_KEY.name:
                raise PolicyError(f"{name} can never be allowed; remove the keys from scrub_keys instead")
            if action is Action.HASH and self.hash_key is None:
                raise PolicyError(
                    f"{name} is to be hashed, and there is no key: set scrubber.hash_key_file (ASSAY_SCRUBBER_HASH_KEY_FILE)"
                )
        for key in self.scrub_keys:
            if not key_name(key):
                raise PolicyError("scrub_keys: a name has no letter or digit")
        if self.hash_key is not None and len(self.hash_key) < HASH_KEY_MIN_BYTES:
            raise PolicyError(f"scrubber.hash_key is shorter than {HASH_KEY_MIN_BYTES} bytes")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], *, hash_key: bytes | None = None) -> "Policy":
        """Build a policy from configuration.

        Keys: `actions` (category to action), `families` (family to action), `scrub_keys` (list of text), `scrub_slugs` (true or false);
        all optional.

        Raises PolicyError on an unknown key, family, category or action, naming the valid ones.
        """
        for key in values:
            known("policy setting", key, POLICY_KEYS)
        return cls(
            actions=actions_of([values], (*FAMILIES.values(), *WITHOUT_RULES.values())),
            hash_key=hash_key,
            scrub_slugs=slugs_of([values], False),
            scrub_keys=keys_of([values]),
        )

    def members(self) -> list[Family]:
        """Return the families that are searched for, in order of rank."""
        return [*(family for family in FAMILIES.values() if family.name in self.families), *self.custom]

    def action(self, family: str) -> Action:
        """Return the action on findings of `family`."""
        return self.actions.get(family, Action.REDACT)

    @property
    def fingerprint(self) -> str:
        """Return 16 hex digits that differ whenever two policies could scrub a text differently.

        The digits depend on the key, but reveal only whether it is another.
        """
        hashing = self.hash_key is not None and Action.HASH in self.actions.values()
        canonical = json.dumps(
            {
                "rules": RULES_VERSION,
                "families": sorted(self.families),
                "actions": {n: str(a) for n, a in sorted(self.actions.items()) if a is not Action.REDACT},
                "custom": [[f.name, str(f.category), f.rules[0].pattern.pattern.decode("latin1")] for f in self.custom],
                "key": hmac.digest(self.hash_key or b"", b"fingerprint", "sha256").hex()[:16] if hashing else "",
                "replacement": self.replacement,
                "scrub_slugs": self.scrub_slugs,
            }
            | ({"catalogue": self.catalogue} if self.catalogue else {})
            | ({"scrub_keys": sorted(set(map(key_name, self.scrub_keys)))} if self.scrub_keys else {}),
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def actions_of(levels: Sequence[Mapping[str, Any]], families: Iterable[Family]) -> dict[str, Action]:
    """Return the action of each family, `redact` left out.

    A later level overrides an earlier one; within a level, a family overrides its category. Each level is a mapping with `actions` and
    `families`. Raises PolicyError.
    """
    members = {family.name: family for family in families}
    effective = dict.fromkeys(members, Action.REDACT)
    for level in levels:
        by_category = _actions("actions", level, "category", Category)
        by_family = _actions("families", level, "family", members)
        for category, action in by_category.items():
            if action is Action.ALLOW and category in FLOOR:
                raise PolicyError(f"category {category} can never be allowed ({_floor()})")
        for name, family in members.items():
            if name in by_family:
                effective[name] = by_family[name]
            elif family.category in by_category and not (
                family is SCRUB_KEY and by_category[family.category] is Action.ALLOW
            ):
                effective[name] = by_category[family.category]
    if not keys_of(levels):
        effective.pop(SCRUB_KEY.name, None)  # it cannot be found
    return {name: action for name, action in effective.items() if action is not Action.REDACT}


def slugs_of(levels: Iterable[Mapping[str, Any]], default: bool) -> bool:
    """Return `scrub_slugs` of the last level that sets it. Raises PolicyError."""
    for level in levels:
        default = level.get("scrub_slugs", default)
        if not isinstance(default, bool):
            raise PolicyError("scrub_slugs must be true or false")
    return default


def keys_of(levels: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the `scrub_keys` of all levels together. Raises PolicyError."""
    names: list[str] = []
    for level in levels:
        given = level.get("scrub_keys", [])
        if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
            raise PolicyError('scrub_keys must be a list of key names, such as ["customer_name"]')
        names += given
    return frozenset(names)


def _actions(key: str, level: Mapping[str, Any], kind: str, valid: Iterable[str]) -> dict[str, Action]:
    given = level.get(key, {})
    if not isinstance(given, Mapping):
        raise PolicyError(f"{key} must map a {kind} to an action; valid: {', '.join(sorted(valid))}")
    return {known(kind, name, valid): Action(known("action", action, Action)) for name, action in given.items()}


def _floor() -> str:
    return f"nor {', '.join(sorted(FLOOR))}: redact, label, hash or refuse them"
