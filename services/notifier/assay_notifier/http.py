"""One HTTP request to a receiver: bounded in time, without redirects.

Errors name the fix without quoting an address.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from assay_notifier.channel import NotDeliveredError
from assay_runtime.http_client import DIRECT, retry_after

#: Transient statuses in addition to 5xx: time-out, too early, too many requests.
_PASSING = {408, 425, 429}


@dataclass(frozen=True)
class Post:
    """Sends to one receiver. The address may contain a secret: it is never logged."""

    url: str
    timeout_s: float
    trust: ssl.SSLContext
    #: The settings to check after a refusal.
    settings: str
    #: Headers of every request, such as credentials.
    headers: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send JSON. Raises `NotDeliveredError`."""
        try:
            async with httpx.AsyncClient(
                timeout=self.timeout_s, verify=self.trust, mounts=DIRECT, follow_redirects=False
            ) as client:
                answer = await client.post(
                    self.url,
                    content=content,
                    headers={"content-type": "application/json", **self.headers, **(headers or {})},
                )
        except httpx.HTTPError as error:
            raise NotDeliveredError(self._unreachable(error), passing=True) from None
        if not answer.is_success:
            raise self._refused(answer)

    def _unreachable(self, error: httpx.HTTPError) -> str:
        parts = urlsplit(self.url)
        where = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
        if isinstance(error, httpx.TimeoutException):
            return f"{where} did not answer within {self.timeout_s:g} s (notifier.timeout_s)"
        if "certificate" in str(error).lower():
            return f"the certificate of {where} is not trusted; check notifier.tls_ca_file"
        return f"{where} cannot be reached ({type(error).__name__}); is it running? check {self.settings}"

    def _refused(self, answer: httpx.Response) -> NotDeliveredError:
        status = answer.status_code
        passing = status in _PASSING or status >= 500
        fixes = {
            401: f"it rejected the credentials; check {self.settings}",
            403: f"it does not permit this; check {self.settings}",
            404: f"it has nothing at that path; check {self.settings}",
            429: "it received too many requests",
        }
        what = fixes.get(
            status, "it has an internal error" if passing else f"it rejected the notice; check {self.settings}"
        )
        return NotDeliveredError(
            f"HTTP {status}: {what}", passing=passing, retry_after_s=retry_after(answer.headers.get("retry-after"))
        )
