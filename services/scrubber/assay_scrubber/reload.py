"""Keeps a process's scrubbers those of its policy file. A file that cannot be used changes nothing: scrubbing goes on as before."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from assay_runtime import metrics
from assay_schema.settings import ScrubberSettings, SettingsError

from .engine import Scrubber
from .policy import PolicyError
from .policy_file import PolicySet, parse_policies
from .vendor_keys import VendorKeysError, catalogue

log = logging.getLogger(__name__)

#: A policy is a page of text; what is larger is some other file.
LARGEST_FILE = 1 << 20

_Stamp = tuple[int, int, int] | None
Scrubbers = tuple[Scrubber, Mapping[str, Scrubber]]


def hash_key_of(settings: ScrubberSettings) -> bytes | None:
    """The key of `hash`, from its file or setting. Raises SettingsError when the file cannot be read."""
    if settings.hash_key_file is not None:
        try:
            return settings.hash_key_file.read_bytes().strip()
        except OSError as error:
            raise SettingsError(f"scrubber.hash_key_file: {error.strerror}: {settings.hash_key_file}") from None
    return settings.hash_key.get_secret_value().encode() if settings.hash_key else None


def read_policies(settings: ScrubberSettings) -> PolicySet:
    """The policies of `scrubber.policy_file`, or the default one. Raises PolicyError, SettingsError or OSError."""
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
    """The scrubber of most projects, and those of projects that differ. Equal policies share one."""
    made = {policies.default.fingerprint: Scrubber(policies.default)}
    for policy in policies.projects.values():
        if policy.fingerprint not in made:
            made[policy.fingerprint] = Scrubber(policy)
    default = made[policies.default.fingerprint]
    different = {name: made[policy.fingerprint] for name, policy in policies.projects.items()}
    return default, {name: scrubber for name, scrubber in different.items() if scrubber is not default}


class PolicyFile:
    """The scrubbers of a policy file, read anew when it changes."""

    def __init__(self, settings: ScrubberSettings, use: Callable[[Scrubber, Mapping[str, Scrubber]], None]) -> None:
        """Reads the file. Raises SettingsError that names it and what is wrong."""
        self._settings, self._use = settings, use
        self._source = "default" if settings.policy_file is None else "file"
        self.problem = ""
        self._loaded = self._seen = self._stamp()
        try:
            self.policies = read_policies(settings)
        except (PolicyError, OSError) as error:
            raise SettingsError(f"{self._name()}: {_reason(error)}") from None
        self._use(*scrubbers_of(self.policies))
        metrics.POLICY_CURRENT.labels(self._source).set(1)

    async def look(self) -> None:
        """Read the file if it changed and has stayed as it is since the last look, so that none is read half-written. Never raises."""
        if self._settings.policy_file is None:
            return
        stamp = self._stamp()
        settled, self._seen = stamp == self._seen, stamp
        if stamp == self._loaded or not settled:
            return
        self._loaded = stamp
        try:
            policies, scrubbers = await asyncio.to_thread(self._read)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the file, scrubbing goes on
            self.problem = f"{self._name()} is not in use, an earlier one is: {_reason(error)}"
            metrics.POLICY_CURRENT.labels(self._source).set(0)
            metrics.POLICY_LOADS.labels("refused").inc()
            log.error("policy not loaded, the earlier one stays: %s", _reason(error))
            return
        self.policies, self.problem = policies, ""
        self._use(*scrubbers)
        metrics.POLICY_CURRENT.labels(self._source).set(1)
        metrics.POLICY_LOADS.labels("loaded").inc()
        log.info("policy loaded", extra={"policy": policies.default.fingerprint})

    def problems(self) -> list[str]:
        """Why the file's policy is not the one in use, if so."""
        return [self.problem] if self.problem else []

    def _read(self) -> tuple[PolicySet, Scrubbers]:
        policies = read_policies(self._settings)
        return policies, scrubbers_of(policies)

    def _stamp(self) -> _Stamp:
        if self._settings.policy_file is None:
            return None
        try:
            stat = self._settings.policy_file.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _name(self) -> str:
        return f"scrubber.policy_file {self._settings.policy_file}" if self._settings.policy_file else "scrubber"


def _reason(error: BaseException) -> str:
    if isinstance(error, PolicyError | SettingsError):
        return str(error)
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
