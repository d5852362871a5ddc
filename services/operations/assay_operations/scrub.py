"""Policies of scrubbing, and what scrubs by them."""

from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.policy_file import PolicySet

#: Complaints shown one by one; the rest is counted.


def scrubber_of(file: Path | None, project: str, *, ner: bool, vendor_keys: bool) -> "Scrubber":
    """What scrubs by the policy of a project. Raises `OperationError`."""
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.names import NamesError, NamesScrubber
    from assay_scrubber.vendor_keys import VendorKeysError, catalogue

    found = policies(file)
    try:
        policy = (found.asking(catalogue()) if vendor_keys else found).of(project)
        return NamesScrubber(policy) if ner else Scrubber(policy)
    except (NamesError, VendorKeysError) as error:
        raise OperationError("invalid", str(error)) from None


def policies(file: Path | None) -> "PolicySet":
    """The policies of `file`, or of the settings' own. Raises OperationError."""
    from assay_runtime.config import load_settings
    from assay_scrubber.policies import read_policies
    from assay_scrubber.policy import PolicyError

    settings = load_settings().scrubber
    if file is not None:
        settings = settings.model_copy(update={"policy_file": file})
    try:
        return read_policies(settings)
    except FileNotFoundError:
        raise OperationError("not_found", f"{settings.policy_file}: there is no such file") from None
    except OSError as error:
        raise OperationError("invalid", f"{settings.policy_file}: cannot be read ({error.strerror})") from None
    except PolicyError as error:
        raise OperationError("invalid", f"{settings.policy_file or 'scrubber'}: {error}") from None
