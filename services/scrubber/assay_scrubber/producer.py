"""Scrub in the producer's own process, for `capture.scrub = "producer"`.

The SDK loads this module by its entry point. It imports nothing of a service: no runtime, no broker, no metrics. Bytes in, bytes out; the
policy file is read once, at creation.
"""

from collections.abc import Mapping

import orjson

from assay_schema.events import Event
from assay_schema.fields import Kind
from assay_schema.scrubbing import Passed
from assay_schema.settings import Settings, SettingsError
from assay_schema.validation import InvalidEvent, parse_event

from .engine import Scrubber
from .own_names import CREDENTIAL_IN_NAME, credential_in, refuse_credentials
from .policies import read_policies, reason_of, scrubbers_of
from .policy import Action, PolicyError
from .summaries import SUMMARIES, summarise
from .vendor_keys import VendorKeysError
from .whole_event import scrub_event

REFUSED = "pii_refused"


class InProducer:
    """Scrub entries with their projects' policies, exactly as the service does."""

    def __init__(self, settings: Settings) -> None:
        """Load the policies. Raises SettingsError for a policy that cannot be used."""
        try:
            self._scrubber, self._projects = scrubbers_of(read_policies(settings.scrubber))
        except (PolicyError, VendorKeysError, OSError) as error:
            file = settings.scrubber.policy_file
            where = f"scrubber.policy_file {file}" if file else "scrubber"
            raise SettingsError(f"{where}: {reason_of(error)}") from None

    def scrub(self, entry: bytes) -> Passed:
        """Return the entry without personal data, and without fields that are not part of an event.

        If an entry breaks the contract, every value is scrubbed, in any field: the service then reports what is wrong with it.
        """
        try:
            event = parse_event(entry)
        except InvalidEvent as problem:
            return self._broken(entry, problem.detail)
        scrubber = self._projects.get(event.project, self._scrubber)
        payload, found = scrub_event(scrubber, event.kind, event.payload.model_dump())
        try:
            refuse_credentials(event.kind, payload, event.service, event.project, event.session_id)
        except InvalidEvent:
            return Passed(None, CREDENTIAL_IN_NAME, {})
        return _passed(scrubber, _encoded(event, payload), found)

    def credential_in(self, name: str) -> str:
        """Return the family of a credential in a name that is stored unchanged, or ''."""
        return credential_in(name)

    def _broken(self, entry: bytes, problem: str) -> Passed:
        document = orjson.loads(entry)
        kind = document.get("kind")
        if isinstance(payload := document.get("payload"), dict):
            document["payload"] = payload | {name: summarise(payload[name]) for name in SUMMARIES if name in payload}
        project = document.get("project")
        scrubber = self._projects.get(project, self._scrubber) if isinstance(project, str) else self._scrubber
        scrubbed, found = scrubber.scrub_json(document)
        invalid = f"{kind}: {problem}" if kind in list(Kind) else problem
        return _passed(scrubber, orjson.dumps(scrubbed), found)._replace(invalid=invalid)


def _passed(scrubber: Scrubber, entry: bytes, found: Mapping[str, int]) -> Passed:
    action = scrubber.policy.action
    if any(action(name) is Action.REFUSE for name in found):
        return Passed(None, REFUSED, {})
    return Passed(entry, "", {name: count for name, count in found.items() if action(name) is not Action.ALLOW})


def _encoded(event: Event, payload: Mapping[str, object]) -> bytes:
    # Only what the producer said: without a project, the gateway takes that of the key.
    said = event.model_fields_set - {"payload"}
    envelope = {name: getattr(event, name) for name in type(event).model_fields if name in said}
    return orjson.dumps(envelope | {"payload": payload}, option=orjson.OPT_UTC_Z)
