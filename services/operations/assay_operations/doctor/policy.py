"""Check that the scrubbing policy that an operator wrote is the one in use."""

import contextlib
import tomllib
from collections.abc import Sequence
from pathlib import Path

from assay_operations.doctor import probes
from assay_operations.doctor.finding import Finding, Status
from assay_schema.settings import Settings, SettingsError

_CHECK = "scrubbing policy"
#: The name of the file in the documentation. It is looked for in the working directory and the data directory.
_USUAL_NAME = "policy.toml"


def examine(settings: Settings, data: Path) -> list[Finding]:
    """Compare the policy file of the settings with the scrubber on this host.

    Without a file and without a problem there is no finding.
    """
    from assay_runtime.config import load_settings

    try:
        file = load_settings().scrubber.policy_file or settings.scrubber.policy_file
    except SettingsError as error:
        return [Finding(_CHECK, Status.FAIL, str(error), "correct the setting it names")]
    running: bool | None = None
    is_current, notes = True, list[str]()
    with contextlib.suppress(OSError):  # it may run elsewhere
        if asked := probes.policy_of(settings.telemetry.host, settings.scrubber.port):
            by_source, notes = asked
            running, is_current = "file" in by_source, all(by_source.values())
    unnamed = next((path for path in (Path(_USUAL_NAME), data / _USUAL_NAME) if _looks_like_policy(path)), None)
    exists = file is not None and file.exists()
    problem = _problem(file) if file is not None and exists else ""
    found = finding(file, problem, unnamed, exists=exists, running=running, is_current=is_current, notes=notes)
    return [found] if found else []


def finding(
    file: Path | None,
    problem: str,
    unnamed: Path | None,
    *,
    exists: bool,
    running: bool | None,
    is_current: bool,
    notes: Sequence[str],
) -> Finding | None:
    """Return the finding, or None if no file is involved. Pure.

    - `file`: the one in the settings; `problem`: the reason why it cannot be used
    - `exists`: False if the file is not on this host, but perhaps in another container
    - `unnamed`: a file that looks like a policy, and that no setting names
    - `running`: True if the scrubber has a policy file, None if no scrubber answers; `is_current`: False if it uses an earlier version
    - `notes`: those of the scrubber
    """
    if running and not is_current:
        summary = next(
            (note for note in notes if "policy_file" in note),
            "the file changed and cannot be used; an earlier version is",
        )
        return Finding(_CHECK, Status.WARN, summary, "correct it, and check it: assay pii policy check FILE")
    if file is not None and problem and not running:
        summary = f"scrubber.policy_file cannot be used: {problem}"
        return Finding(
            _CHECK, Status.FAIL, summary, f"until then no scrubber starts; check it: assay pii policy check {file}"
        )
    if file is not None and running is False:
        summary = f"{file} is not in use: the running scrubber has the default policy"
        return Finding(_CHECK, Status.WARN, summary, "restart the scrubber, or `assay up`")
    if file is not None and running is None and not exists:
        summary = f"{file} is not on this host, and no scrubber answers here"
        return Finding(
            _CHECK, Status.WARN, summary, "correct scrubber.policy_file (ASSAY_SCRUBBER_POLICY_FILE) if it should be"
        )
    if file is not None:
        return Finding(_CHECK, Status.OK, f"{file}" + (" is in use" if running else " is valid"))
    if unnamed is not None and not running:
        summary = f"{unnamed} is not in use: no setting names it, so the default policy applies"
        hint = f'set policy_file = "{unnamed}" under [scrubber] in assay.toml (ASSAY_SCRUBBER_POLICY_FILE), and restart'
        return Finding(_CHECK, Status.WARN, summary, hint)
    return None


def _problem(file: Path) -> str:
    from assay_scrubber.policies import reason_of
    from assay_scrubber.policy import HASH_KEY_MIN_BYTES, PolicyError
    from assay_scrubber.policy_file import parse_policies

    try:
        parse_policies(
            file.read_text(encoding="utf-8"), hash_key=bytes(HASH_KEY_MIN_BYTES)
        )  # the scrubber has the real key
    except UnicodeDecodeError:
        return f"{file}: not UTF-8"
    except (PolicyError, OSError) as error:
        return f"{file}: {reason_of(error)}"
    return ""


def _looks_like_policy(path: Path) -> bool:
    """Return True for TOML with names of a policy alone: the file of another program can have this name."""
    try:
        names = tomllib.loads(path.read_text(encoding="utf-8")).keys()
    except (OSError, ValueError):
        return False
    return bool(names) and names <= {"actions", "families", "patterns", "projects", "scrub_keys", "scrub_slugs"}
