"""Rules and baseline of a nightly evaluation."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.rules import rules_of
from assay_schema.settings import FILE_VARIABLE, EvalsSettings

if TYPE_CHECKING:
    from assay_evals.compare.rules_file import RulesFile
    from assay_evals.nightly import Attempt
    from assay_evals.run.model import Run, RunConfig
    from assay_runtime.store import Client


def not_trusted(setting: str, why: str, section: str = "evals") -> OperationError:
    """Return the error for code in a settings file that was read implicitly."""
    return OperationError(
        "refused",
        f"{section}.{setting} comes from ./assay.toml, which was read only because it is in the working directory, and {why}: "
        f"set ASSAY_{section.upper()}_{setting.upper()}, or, if you trust the file, name it: {FILE_VARIABLE}=assay.toml, or where "
        f"`assay up` runs {FILE_VARIABLE}=data/secrets/evaluator.toml, which contains that part of it too",
    )


def rules_for(named: Path | None, configured: Path | None) -> "RulesFile":
    """Read the rules of the command line, else of `evals.rules`, else none. Raises `OperationError`."""
    from assay_evals.compare.rules_file import RulesFile, read_rules
    from assay_evals.errors import EvalsError
    from assay_runtime.config import is_implicit

    if named or configured is None:
        return rules_of(named)
    try:
        found: RulesFile = read_rules(configured)
    except EvalsError as error:
        raise OperationError("invalid", f"evals.rules: {error}") from None
    if is_implicit("evals", "rules") and any(each.type == "function" for each in found.scorers):
        raise not_trusted("rules", "its scorers are code to run")
    return found


def baseline_of(
    client: "Client", evals: EvalsSettings, attempts: "Sequence[Attempt]", config: "RunConfig"
) -> "Run | None":
    """Return the run to compare with: `evals.baseline`, or the last that passed; None without one."""
    from assay_evals.compare.compare_runs import comparable
    from assay_evals.nightly import worth_comparing
    from assay_evals.run.run_store import load_stored

    if evals.baseline:
        return _on_disk(evals.baseline, Path(evals.runs_dir)) or load_stored(client, evals.baseline)
    for each in worth_comparing(attempts):
        if (before := comparable(load_stored(client, str(each.run_id)), config)) is not None:
            return before
    return None


def _on_disk(name: str, runs: Path) -> "Run | None":
    from assay_evals.run.folder import RUN_FILE, read_run

    return next((read_run(folder) for folder in (Path(name), runs / name) if (folder / RUN_FILE).exists()), None)
