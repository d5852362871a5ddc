"""One bounded request to an anchor: its time, the size of the answer, no redirects."""

import ssl
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from assay_auditor.anchors.anchor import AnchorError
from assay_runtime.http_client import DIRECT

#: Most bytes of an answer: a time stamp with its certificates has some thousands.
ANSWER_BYTES = 100_000


@dataclass(frozen=True)
class Post:
    """Sends to one address.

    `setting`: what to check if the address does not answer.
    """

    url: str
    timeout_s: float
    trust: ssl.SSLContext | bool
    setting: str

    def __call__(self, content: bytes, content_type: str) -> tuple[int, bytes]:
        """Return status and body of the answer. Raises `AnchorError`."""
        import httpx

        deadline = time.monotonic() + self.timeout_s
        try:
            with (
                httpx.Client(
                    timeout=self.timeout_s, verify=self.trust, mounts=DIRECT, follow_redirects=False
                ) as client,
                client.stream("POST", self.url, content=content, headers={"content-type": content_type}) as answer,
            ):
                body = b""
                for part in answer.iter_raw():
                    body += part
                    if len(body) > ANSWER_BYTES:
                        raise AnchorError(
                            f"{self.where} answers with more than {ANSWER_BYTES:,} bytes; check {self.setting}"
                        )
                    if time.monotonic() > deadline:
                        raise AnchorError(self._late())
                return answer.status_code, body
        except httpx.TimeoutException:
            raise AnchorError(self._late()) from None
        except httpx.HTTPError as error:
            if "certificate" in str(error).lower():
                raise AnchorError(
                    f"the certificate of {self.where} is not trusted; check auditor.tls_ca_file"
                ) from None
            raise AnchorError(
                f"{self.where} cannot be reached ({type(error).__name__}); is it running? check {self.setting}"
            ) from None

    @property
    def where(self) -> str:
        """Host and port, without the rest of the address."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"

    def _late(self) -> str:
        return f"{self.where} did not answer within {self.timeout_s:g} s (auditor.anchor_timeout_s)"
