"""Reviews of cases, and the change log of a dataset's versions. Pure.

Mined and generated cases are unreviewed until a person accepts them. A release records the changes since the previous
version.
"""

import random
import re
from collections.abc import Collection

from assay_evals.dataset.changes import diff_datasets
from assay_evals.dataset.model import Case, Change, Dataset, DatasetError

#: How notes began before cases had the field `reviewed`.
_UNREVIEWED = "Unreviewed"


def is_reviewed(case: Case) -> bool:
    """True if a person wrote or reviewed the case."""
    return case.reviewed and not (case.notes or "").startswith(_UNREVIEWED)


def unreviewed(dataset: Dataset, *, share: float = 1.0, seed: int = 0) -> list[Case]:
    """Return cases without a review; with a `share` below 1, a random share of them, at least one."""
    pending = [case for case in dataset.cases if not is_reviewed(case)]
    if share >= 1 or not pending:
        return pending
    drawn = set(random.Random(seed).sample(range(len(pending)), max(1, round(share * len(pending)))))  # noqa: S311  # no secret
    return [case for number, case in enumerate(pending) if number in drawn]


def reviewed(dataset: Dataset, *, kept: Collection[str] = (), dropped: Collection[str] = ()) -> Dataset:
    """Return the dataset after a review: `kept` cases are reviewed, `dropped` ones are removed.

    Raises `DatasetError` for unknown ids.
    """
    case_ids = {case.id for case in dataset.cases}
    problems = [
        f"case {name[:64]}: the dataset holds none of that id" for name in (*kept, *dropped) if name not in case_ids
    ]
    problems += [f"case {name}: kept and dropped" for name in kept if name in dropped]
    if problems:
        raise DatasetError(problems)
    cases = [_looked_at(case) if case.id in kept else case for case in dataset.cases if case.id not in dropped]
    if not cases:
        raise DatasetError(["no cases would be left: a dataset has at least one"])
    return dataset.model_copy(update={"cases": cases})


def _looked_at(case: Case) -> Case:
    notes = case.notes
    if notes and notes.startswith(_UNREVIEWED):
        notes = notes.removeprefix(_UNREVIEWED).lstrip(":").strip() or None
        notes = notes and notes[0].upper() + notes[1:]
    return case.model_copy(update={"reviewed": True, "notes": notes})


def _numbers(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version without trailing zeros; None if it cannot be compared.

    Only versions made of numbers and dots can.
    """
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", version):
        return None
    numbers = [int(part) for part in version.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def released(old: Dataset, new: Dataset, *, version: str, note: str, at: str) -> Dataset:
    """Return `new` as a new version, with its changes added to the log of `old`.

    Raises `DatasetError` if nothing changed.
    """
    changes = diff_datasets(old, new)
    problems = []
    if changes.same:
        problems.append("no case differs: there is nothing to release")
    if not version.strip() or not version.isprintable():
        problems.append("a version is words of one line, such as 1.1.0")
    if version in {old.version, *(change.version for change in old.changelog)}:
        problems.append(f"version {version[:64]} is taken: choose another")
    elif (now := _numbers(version)) and (last := _numbers(old.version)) and now <= last:
        problems.append(f"version {version[:64]} is not above {old.version[:64]}, the last: choose a higher one")
    if problems:
        raise DatasetError(problems)
    change = Change(
        version=version, at=at, note=note, added=changes.added, removed=changes.removed, changed=sorted(changes.changed)
    )
    return new.model_copy(update={"version": version, "changelog": [change, *old.changelog]})
