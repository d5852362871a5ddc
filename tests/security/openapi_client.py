"""Send a service what its OpenAPI document allows, and what it does not: every answer has a status and a form that it lists."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

DOCUMENTS = Path(__file__).parents[2] / "docs" / "openapi"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def operations(service: str) -> list[Any]:
    """Return the operations of the document of a service."""
    schema = schemathesis.openapi.from_dict(json.loads((DOCUMENTS / f"{service}.json").read_text()))
    return [found.ok() for found in schema.get_all_operations()]


class DocumentedClient:
    """A client that knows the document only."""

    def __init__(self, url: str, headers: Callable[[Any], Mapping[str, str]]) -> None:
        self._url = url
        #: Returns the headers of a request to an operation.
        self._headers = headers
        #: Number of answers by operation and status.
        self.answers: Counter[str] = Counter()
        #: Number of events that a gateway says to have accepted.
        self.accepted = 0

    def send_all(self, wanted: Iterable[Any], *, examples: int, seed: int) -> list[str]:
        """Send so many requests to each operation, right and wrong ones. Return what is wrong with the answers."""
        faults = []
        with requests.Session() as session:
            for operation in wanted:
                for mode in GenerationMode if len(operation.body) else [GenerationMode.POSITIVE]:
                    try:
                        self._send(operation, mode, session, examples, seed)
                    except FailureGroup as group:
                        faults += [f"{operation.label}: {each}" for each in group.exceptions]
        return faults

    def send(self, case: Any) -> list[str]:
        """Send one request. Return what is wrong with the answer."""
        with requests.Session() as session:
            try:
                self._attempt(case, session)
            except FailureGroup as group:
                return [f"{case.operation.label}: {each}" for each in group.exceptions]
        return []

    def _send(self, operation: Any, mode: GenerationMode, session: requests.Session, examples: int, seed: int) -> None:
        @seeded(seed)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(mode))
        def attempt(case: Any) -> None:
            self._attempt(case, session)

        attempt()

    def _attempt(self, case: Any, session: requests.Session) -> None:
        headers = dict(self._headers(case.operation))
        case.headers.pop("Authorization", None)  # a made-up key would be all that is refused
        answer = case.call(base_url=self._url, session=session, headers=headers, timeout=60)
        self.answers[f"{case.operation.label} {answer.status_code}"] += 1
        self.accepted += _accepted(answer.status_code, answer.content)
        case.validate_response(answer, checks=CHECKS)


def _accepted(status: int, content: bytes) -> int:
    if status == 202:  # one verdict
        return 1
    try:
        found = json.loads(content)
    except ValueError:
        return 0
    return int(found.get("accepted", 0)) if isinstance(found, dict) else 0
