"""Parse the policy file: the policy of every project, and the overrides of single projects. Pure.

The caller reads the file, which is TOML. Everything is optional; see docs/policy.md:

    scrub_keys = ["customer_name"]  # values under these keys are redacted as a whole
    [actions]              # by category
    contact = "label"
    [families]             # by family; overrides its category
    ip_address = "allow"
    [patterns.staff_number]
    category = "online_identifier"
    pattern = '\\bEMP-[0-9]{5}\\b'
    [projects.clinic.actions]   # overrides the settings for all projects
    contact = "refuse"
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from assay_schema.limits import PROJECT_PATTERN, PROJECT_RULE

from .custom import PatternError, custom_family
from .family import Family
from .policy import POLICY_KEYS, Policy, PolicyError, actions_of, keys_of, known, slugs_of
from .registry import FAMILIES, WITHOUT_RULES
from .taxonomy import Category

_LEVEL_KEYS = (*POLICY_KEYS, "patterns")
_PATTERN_KEYS = ("category", "pattern", "description")
_LONGEST_PROJECT = 64
#: Longest file in which the line of a mistake is looked for.
_LINES_MAX = 500
_IN_PROJECT = re.compile(rf"projects\.({PROJECT_PATTERN}): ")
_PROJECT = re.compile(PROJECT_PATTERN)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The policy of every project."""

    default: Policy = field(default_factory=Policy)
    projects: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, project: str) -> Policy:
        """Return the policy of one project."""
        return self.projects.get(project, self.default)

    def asking(self, catalogue: str) -> "PolicySet":
        """Return these policies with a catalogue of vendors' keys as well (`vendor_keys.catalogue`)."""
        projects = {name: replace(policy, catalogue=catalogue) for name, policy in self.projects.items()}
        return PolicySet(replace(self.default, catalogue=catalogue), projects)


def parse_policies(text: str, *, hash_key: bytes | None = None, scrub_slugs: bool = False) -> PolicySet:
    """Return the policies that a file's text describes.

    `scrub_slugs`: the default for policies that do not set it.
    Raises PolicyError, which states the line and the valid values, and quotes names but no other values.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"not valid TOML: {_without_content(str(error))}") from None
    try:
        return _policies(document, hash_key, scrub_slugs)
    except PolicyError as error:
        line = _line_of(text, error, hash_key, scrub_slugs)
        raise PolicyError(f"line {line}: {error}" if line else str(error)) from None


def _line_of(text: str, error: PolicyError, hash_key: bytes | None, scrub_slugs: bool) -> int:
    """Return the line with which the error begins: the file up to there has it, and up to the line before does not.

    0 for a long file. The parser keeps no lines, so the file is read again up to each line; only a mistake costs that time.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) > _LINES_MAX:
        return 0
    wanted = _without_choice(error)
    in_project = _IN_PROJECT.match(wanted)
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            document = tomllib.loads("".join(lines[:number]))
            if not wanted.startswith("projects"):  # projects without the mistake only cost time
                document.pop("projects", None)
            elif in_project and isinstance(projects := document.get("projects"), dict):
                document["projects"] = {name: level for name, level in projects.items() if name == in_project[1]}
            _policies(document, hash_key, scrub_slugs)
        except tomllib.TOMLDecodeError:  # within a value of several lines
            continue
        except PolicyError as found:
            if _without_choice(found) == wanted:
                return number
    return 0


def _without_choice(error: PolicyError) -> str:
    """Return the message without the valid names: patterns further down are among them."""
    return str(error).partition("; valid")[0]


def _policies(document: dict[str, Any], hash_key: bytes | None, scrub_slugs: bool) -> PolicySet:
    projects = document.pop("projects", {})
    if not isinstance(projects, Mapping):
        raise PolicyError("projects must be a table of projects, such as [projects.clinic.actions]")
    default = _policy([("", document)], hash_key, scrub_slugs)
    found = {}
    for name, level in projects.items():
        where = f"projects.{name[:_LONGEST_PROJECT]}"
        if not _PROJECT.fullmatch(name):
            raise PolicyError(f"{where}: no project can have this name: {PROJECT_RULE}")
        if not isinstance(level, Mapping):
            raise PolicyError(f"{where} must be a table, such as [{where}.actions]")
        found[name] = _policy([("", document), (f"{where}: ", level)], hash_key, scrub_slugs)
    return PolicySet(default, MappingProxyType(found))


def _policy(levels: list[tuple[str, Mapping[str, Any]]], hash_key: bytes | None, scrub_slugs: bool) -> Policy:
    where, last = levels[-1]
    try:
        for key in last:
            known("policy setting", key, _LEVEL_KEYS if where else (*_LEVEL_KEYS, "projects"))
        tables = [level for _, level in levels]
        custom = _patterns(tables)
        return Policy(
            actions=actions_of(tables, (*FAMILIES.values(), *WITHOUT_RULES.values(), *custom)),
            custom=custom,
            hash_key=hash_key,
            scrub_slugs=slugs_of(tables, scrub_slugs),
            scrub_keys=keys_of(tables),
        )
    except (PolicyError, PatternError) as error:
        raise PolicyError(f"{where}{error}") from None


def _patterns(levels: Iterable[Mapping[str, Any]]) -> tuple[Family, ...]:
    """Return the policy's own families. A project can redefine a pattern that is defined for all projects."""
    rows: dict[str, Mapping[str, Any]] = {}
    for level in levels:
        given = level.get("patterns", {})
        if not isinstance(given, Mapping) or not all(isinstance(row, Mapping) for row in given.values()):
            raise PolicyError("patterns must be tables, such as [patterns.staff_number]")
        rows.update(given)
    return tuple(_pattern(name, row, number) for number, (name, row) in enumerate(rows.items()))


def _pattern(name: str, row: Mapping[str, Any], number: int) -> Family:
    for key in row:
        known("setting of a pattern", key, _PATTERN_KEYS)
    if "category" in row:  # first, so that this mistake begins in the line of the category
        known(f"category of patterns.{name}", row["category"], Category)
    pattern, description = row.get("pattern"), row.get("description", "")
    if not isinstance(pattern, str) or not isinstance(description, str):
        raise PolicyError(f"patterns.{name}: pattern must be text; the same applies to description")
    if "category" not in row:
        raise PolicyError(f"patterns.{name} needs a category; valid: {', '.join(sorted(Category))}")
    category = Category(known(f"category of patterns.{name}", row.get("category"), Category))
    return custom_family(name, category, pattern, number=number, description=description)


def _without_content(message: str) -> str:
    """Return the parser's message up to its quotation, with the position in the file."""
    place = message.rfind("(at ")
    return message[place:].strip("()") if place >= 0 else "see its syntax"
