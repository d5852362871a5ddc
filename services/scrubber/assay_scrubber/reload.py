"""Keep a process's scrubbers up to date with its policy file.

A file that cannot be used changes nothing: scrubbing continues with the last valid one.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from assay_runtime import metrics
from assay_schema.settings import ScrubberSettings, SettingsError

from .engine import Scrubber
from .policies import Scrubbers, read_policies, reason_of, scrubbers_of
from .policy import PolicyError
from .policy_file import PolicySet

log = logging.getLogger(__name__)

_Stamp = tuple[int, int, int] | None


class PolicyFile:
    """The scrubbers of a policy file, re-read when it changes."""

    def __init__(self, settings: ScrubberSettings, use: Callable[[Scrubber, Mapping[str, Scrubber]], None]) -> None:
        """Read the file. Raises SettingsError with the file's name and the problem."""
        self._settings, self._use = settings, use
        self._source = "default" if settings.policy_file is None else "file"
        self.problem = ""
        self._loaded = self._seen = self._stamp()
        try:
            self.policies = read_policies(settings)
        except (PolicyError, OSError) as error:
            raise SettingsError(f"{self._name()}: {reason_of(error)}") from None
        self._use(*scrubbers_of(self.policies))
        metrics.POLICY_CURRENT.labels(self._source).set(1)
        if settings.policy_file is not None:
            self._log_policies()

    async def look(self) -> None:
        """Read the file if it changed and has been stable since the last look. Never raises.

        This avoids reading a file that is still being written.
        """
        if self._settings.policy_file is None:
            return
        stamp = self._stamp()
        settled, self._seen = stamp == self._seen, stamp
        if stamp == self._loaded or not settled:
            return
        self._loaded = stamp
        try:
            policies, scrubbers = await asyncio.to_thread(self._read)
        except Exception as error:  # noqa: BLE001  # scrubbing continues after any error of the file
            self.problem = f"{self._name()} is not in use; an earlier version is: {reason_of(error)}"
            metrics.POLICY_CURRENT.labels(self._source).set(0)
            metrics.POLICY_LOADS.labels("refused").inc()
            log.error("policy not loaded; the earlier one remains in use: %s", reason_of(error))
            return
        self.policies, self.problem = policies, ""
        self._use(*scrubbers)
        metrics.POLICY_CURRENT.labels(self._source).set(1)
        metrics.POLICY_LOADS.labels("loaded").inc()
        self._log_policies()

    def _log_policies(self) -> None:
        """Log the fingerprint of every policy in use, as `assay pii policy check` prints them."""
        projects = {name: policy.fingerprint for name, policy in sorted(self.policies.projects.items())}
        log.info("policy loaded", extra={"policy": self.policies.default.fingerprint, "projects": projects})

    def problems(self) -> list[str]:
        """Return why the file's policy is not the one in use, if so."""
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
