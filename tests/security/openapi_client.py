"""Send a gateway what its OpenAPI document allows, and what it does not: every answer has a status and a form that it lists."""

import json
from collections import Counter
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

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi" / "gateway.json"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def operations() -> list[Any]:
    """Return the operations of the document."""
    schema = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_text()))
    return [found.ok() for found in schema.get_all_operations()]


class DocumentedClient:
    """A client that knows the document only."""

    def __init__(self, port: int, keys: dict[str, str]) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._keys = keys
        #: Number of answers by operation and status.
        self.answers: Counter[str] = Counter()
        #: Number of events that the gateway says to have accepted.
        self.accepted = 0

    def send_all(self, *, examples: int, seed: int) -> list[str]:
        """Send so many requests to each operation, right and wrong ones. Return what is wrong with the answers."""
        faults = []
        with requests.Session() as session:
            for operation in operations():
                for mode in GenerationMode if len(operation.body) else [GenerationMode.POSITIVE]:
                    try:
                        self._send(operation, mode, session, examples, seed)
                    except FailureGroup as group:
                        faults += [f"{operation.label}: {each}" for each in group.exceptions]
        return faults

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
            key = self._keys["feedback" if operation.path == "/v1/feedback" else "ingest"]
            answer = case.call(
                base_url=self._url, session=session, headers={"Authorization": f"Bearer {key}"}, timeout=60
            )
            self.answers[f"{operation.label} {answer.status_code}"] += 1
            self.accepted += _accepted(answer.status_code, answer.content)
            case.validate_response(answer, checks=CHECKS)

        attempt()


def _accepted(status: int, content: bytes) -> int:
    if status == 202:  # one verdict
        return 1
    try:
        found = json.loads(content)
    except ValueError:
        return 0
    return int(found.get("accepted", 0)) if isinstance(found, dict) else 0
