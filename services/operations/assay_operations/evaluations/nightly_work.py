"""Interface of an evaluation that the nightly worker runs, and the checks of its settings."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from assay_operations.errors import OperationError
from assay_operations.evaluations.nightly_rules import not_trusted
from assay_operations.evaluations.paid_calls import NoKeyError
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.nightly import Attempt

#: Folder of cached replies in `evals.runs_dir`.
_REPLIES = ".nightly-replies"
#: Least share of the questions or pairs of a night that needs a result.
_LEAST = 0.5


class Work(Protocol):
    """One evaluation of a night."""

    #: Name of the series of its attempts.
    evaluation: str
    #: Cost of the attempt so far in US dollars, whether it has a result or not. The caller resets it before each.
    cost_usd: float

    def run(self, attempt: "Attempt", attempts: "Sequence[Attempt]", /) -> "tuple[Attempt, PairedRuns | None]":
        """Return the attempt with its outcome, and a comparison with an earlier run if there is one.

        `attempts` are the earlier ones. Raises `NoKeyError`, `TimeoutError` after the deadline, and `OperationError` or
        `EvalsError` if there is no result.
        """
        ...


def expect_trusted_target(section: str, target: str) -> None:
    """Raise `OperationError` if a target is code, and comes from a file that was read implicitly."""
    from assay_runtime.config import is_implicit

    if is_implicit(section, "target") and not target.startswith(("http://", "https://")):
        raise not_trusted("target", "it is code to run", section)


def require_key(settings: Settings, setting: str) -> None:
    """Raise `NoKeyError` if the judge of Anthropic's API has no key. `setting` chose it."""
    from assay_judge.backends import key_of

    if not key_of(settings.judge):
        raise NoKeyError(f'{setting} is anthropic, and there is no key: set judge.api_key, or {setting} = "lexical"')


def night_name(settings: Settings, at: datetime) -> str:
    """Return the beginning of the names of a night's files."""
    from assay_evals.nightly import night_of

    return f"nightly-{night_of(at, settings.evals.hour):%Y%m%d}"


def replies_of_night(settings: Settings, at: datetime) -> Path:
    """Return the folder of a night's cached replies of judges, and remove those of other nights.

    An attempt that follows another pays for no reply again, and a night takes nothing over from an earlier one.
    """
    mine = Path(settings.evals.runs_dir) / _REPLIES / night_name(settings, at)
    for other in mine.parent.glob("*"):
        if other != mine:
            shutil.rmtree(other, ignore_errors=True)
    return mine


def measured_enough(attempt: "Attempt", measured: int, of: int, what: str) -> "Attempt":
    """Return the attempt, as an error if it has a result for less than half.

    A measured failure stays a failure.
    """
    from assay_evals.nightly import Outcome

    if attempt.failed_metrics or measured >= of * _LEAST:
        return attempt
    return replace(attempt, outcome=Outcome.ERROR, detail=f"only {measured:,} of {of:,} {what}")


@contextmanager
def settings_named(names: Mapping[str, str]) -> Iterator[None]:
    """Name settings instead of options in the errors of an operation.

    `names` has the setting of each option.
    """
    try:
        yield
    except OperationError as error:
        pattern = "|".join(re.escape(option) for option in sorted(names, key=len, reverse=True))
        text = re.sub(rf"({pattern})(?![\w-])", lambda found: names[found[1]], str(error))
        if isinstance(error, NoKeyError):
            raise NoKeyError(text) from None
        raise OperationError(error.kind, text) from None


def beyond_estimate(attempt: "Attempt", estimated_usd: float, left_usd: float, section: str) -> "Attempt":
    """Return the attempt of a night that has less left than judging usually costs: it does not begin."""
    from assay_evals.nightly import Outcome

    detail = f"judging usually costs ${estimated_usd:.2f} here, and ${max(0.0, left_usd):.2f} are left"
    detail += f": raise {section}.budget_usd, or lower {section}.limit"
    return replace(attempt, outcome=Outcome.BUDGET_EXCEEDED, detail=detail)
