"""Scrubbing policies, and the families they detect."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_scrubber.policy import Policy
    from assay_scrubber.policy_file import PolicySet


def policies(file: Path | None) -> "PolicySet":
    """Read the policies of `file`, or of the settings. Raises `OperationError`."""
    from assay_runtime.config import load_settings
    from assay_scrubber.policies import read_policies
    from assay_scrubber.policy import PolicyError

    settings = load_settings().scrubber
    if file is not None:
        settings = settings.model_copy(update={"policy_file": file})
    try:
        return read_policies(settings)
    except FileNotFoundError:
        raise OperationError("not_found", f"{settings.policy_file}: no such file") from None
    except OSError as error:
        raise OperationError("unavailable", f"{settings.policy_file}: cannot be read ({error.strerror})") from None
    except PolicyError as error:
        raise OperationError("invalid", f"{settings.policy_file or 'scrubber'}: {error}") from None


def undetected_categories(file: Path, checked: "PolicySet") -> list[str]:
    """List the categories with an action in a valid policy file that no family of that project detects."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    levels = [
        (document, checked.default),
        *((document["projects"][name], own) for name, own in checked.projects.items()),
    ]
    return sorted(
        {
            category
            for level, policy in levels
            for category in level.get("actions", {})
            if category not in {str(family.category) for family in policy.members()}
        }
    )


def families_of(policy: "Policy") -> list[dict[str, str]]:
    """List the families of a policy: name, category, action, description."""
    from assay_scrubber.registry import SCRUB_KEY

    return [
        {
            "family": family.name,
            "category": str(family.category),
            "action": str(policy.action(family.name)),
            "description": family.description,
        }
        for family in (*policy.members(), *((SCRUB_KEY,) if policy.scrub_keys else ()))
    ]
