"""One request to an OTLP backend over HTTP: bounded in time and size, without redirects.

Neither an address nor a text of the backend is logged or kept: the text may quote captured content.
"""

import asyncio
import contextlib
import gzip
from dataclasses import dataclass

import httpx
import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from assay_otlp_exporter.endpoint import Endpoint
from assay_runtime.http_client import DIRECT, retry_after

#: Maximum bytes of an answer that are read.
ANSWER_BYTES = 64 * 1024
#: Level of gzip: the fastest. Higher ones cost more time than they save in transfer.
GZIP_LEVEL = 1
_TYPE = "application/x-protobuf"


@dataclass(frozen=True)
class Answer:
    """An answer of the backend, or none: then `status` is 0, and `error` is the class of the error."""

    status: int
    error: str = ""
    #: Pause that the backend asks for, in seconds.
    retry_after_s: float = 0.0
    #: Spans that it did not take although it took the request (`partial_success`).
    rejected: int = 0

    @property
    def is_success(self) -> bool:
        """True if the backend took the request."""
        return 200 <= self.status < 300

    @property
    def error_class(self) -> str:
        """Return a short name of the failure."""
        return self.error or f"HTTP{self.status}"


class Sender:
    """Sends requests to one endpoint, over connections that stay open."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            timeout=timeout_s, verify=endpoint.trust, mounts=DIRECT, follow_redirects=False
        )
        self._headers = {**endpoint.headers, "content-type": _TYPE, "user-agent": "assay-otlp-exporter"}

    async def send(self, body: bytes) -> Answer:
        """Send an `ExportTraceServiceRequest`. Never raises an error of the backend."""
        headers = self._headers
        if self.endpoint.is_compressed:
            body, headers = gzip.compress(body, GZIP_LEVEL), headers | {"content-encoding": "gzip"}
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", self.endpoint.url, content=body, headers=headers) as answer,
            ):
                return Answer(
                    answer.status_code,
                    retry_after_s=retry_after(answer.headers.get("retry-after")),
                    rejected=_rejected(await _read(answer)) if answer.is_success else 0,
                )
        except Exception as error:  # noqa: BLE001  # no error of a backend or an address may blame an entry
            return Answer(0, type(error).__name__)


async def _read(answer: httpx.Response) -> bytes:
    """Return the body; nothing if it is long or broken, because the status alone says that the spans were taken."""
    found = b""
    with contextlib.suppress(httpx.HTTPError):
        async for part in answer.aiter_bytes():
            found += part
            if len(found) > ANSWER_BYTES:
                return b""
        return found
    return b""


def _rejected(body: bytes) -> int:
    """Return the rejected spans in an answer, which is protobuf, or JSON from some backends; 0 if it is neither."""
    if body[:1] in (b"{", b"["):
        try:
            return max(0, int(orjson.loads(body)["partialSuccess"]["rejectedSpans"]))
        except (ValueError, KeyError, TypeError):
            return 0
    try:
        return max(0, int(ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans))
    except DecodeError:
        return 0
