"""The error of every refused request, and the JSON of errors. Pure.

Messages say what to change. They never repeat anything of the request.
"""

from collections.abc import Mapping
from typing import Any

#: Longest `Retry-After`, in seconds: some exporters give up instead of waiting longer.
RETRY_MAX_S = 5


class RefusedError(Exception):
    """A request is refused with a status, a short stable code and a message."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        #: More members of the error object, such as the limit.
        self.facts = dict(facts or {})

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the JSON of the answer."""
        return {"error": {"code": self.code, "message": self.message, **self.facts}, "request_id": request_id}


def unauthorized() -> RefusedError:
    """Refuse a request without a valid key: one message for all causes."""
    return RefusedError(
        401,
        "unauthorized",
        "a valid key is needed: Authorization: Bearer assay_...; assay keys create makes one",
        headers={"WWW-Authenticate": "Bearer"},
    )


def unavailable(code: str, message: str, retry_s: int = 1) -> RefusedError:
    """Ask the client to send the same request again, soon. Nothing is lost or stored twice then."""
    return RefusedError(503, code, message, headers={"Retry-After": str(max(1, min(RETRY_MAX_S, retry_s)))})


def too_large(limit: int) -> RefusedError:
    """Refuse a body over a limit in bytes."""
    return RefusedError(
        413,
        "too_large",
        f"the body is larger than the {limit} bytes that this path takes; send less in a request",
        facts={"limit": limit},
    )


def malformed(code: str, message: str) -> RefusedError:
    """Refuse a body that cannot be read as a whole."""
    return RefusedError(400, code, message)
