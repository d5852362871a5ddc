"""Load the policies that settings name, and create their scrubbers.

Reads the policy file and the key of `hash`, and imports nothing of a service.
"""

from collections.abc import Mapping

from assay_schema.settings import ScrubberSettings, SettingsError

from .engine import Scrubber
from .policy import HASH_KEY_MIN_BYTES, PolicyError
from .policy_file import PolicySet, parse_policies
from .vendor_keys import VendorKeysError, catalogue

#: A policy is a page of text; a larger file is not a policy.
LARGEST_FILE = 1 << 20

Scrubbers = tuple[Scrubber, Mapping[str, Scrubber]]


def hash_key_of(settings: ScrubberSettings) -> bytes | None:
    """Return the key of `hash`, from its file or setting.

    Raises SettingsError if the file cannot be read, or the key is too short.
    """
    if settings.hash_key_file is not None:
        try:
            key = settings.hash_key_file.read_bytes().strip()
        except OSError as error:
            raise SettingsError(f"scrubber.hash_key_file: {error.strerror}: {settings.hash_key_file}") from None
        source = f"scrubber.hash_key_file (or ASSAY_SCRUBBER_HASH_KEY_FILE): the key in {settings.hash_key_file}"
    elif settings.hash_key:
        key = settings.hash_key.get_secret_value().encode()
        source = "scrubber.hash_key (or ASSAY_SCRUBBER_HASH_KEY): the key"
    else:
        return None
    if len(key) < HASH_KEY_MIN_BYTES:
        raise SettingsError(f"{source} is shorter than {HASH_KEY_MIN_BYTES} bytes")
    return key


def read_policies(settings: ScrubberSettings) -> PolicySet:
    """Return the policies of `scrubber.policy_file`, or the default one.

    Raises PolicyError, SettingsError or OSError.
    """
    policies = _read(settings)
    if not settings.vendor_keys:
        return policies
    try:
        return policies.asking(catalogue())
    except VendorKeysError as error:
        raise SettingsError(f"scrubber.vendor_keys: {error}") from None


def _read(settings: ScrubberSettings) -> PolicySet:
    key, file = hash_key_of(settings), settings.policy_file
    if file is None:
        return parse_policies("", hash_key=key, scrub_slugs=settings.scrub_slugs)
    data = file.read_bytes()
    if len(data) > LARGEST_FILE:
        raise PolicyError(f"larger than {LARGEST_FILE} bytes; is it a policy file?")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise PolicyError("not UTF-8") from None
    return parse_policies(text, hash_key=key, scrub_slugs=settings.scrub_slugs)


def scrubbers_of(policies: PolicySet) -> Scrubbers:
    """Return the default scrubber, and those of projects that differ. Equal policies share one."""
    made = {policies.default.fingerprint: Scrubber(policies.default)}
    for policy in policies.projects.values():
        if policy.fingerprint not in made:
            made[policy.fingerprint] = Scrubber(policy)
    default = made[policies.default.fingerprint]
    different = {name: made[policy.fingerprint] for name, policy in policies.projects.items()}
    return default, {name: scrubber for name, scrubber in different.items() if scrubber is not default}


def reason_of(error: BaseException) -> str:
    """Return why a policy cannot be used. The text contains only names from the policy."""
    if isinstance(error, PolicyError | SettingsError):
        return str(error)
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
