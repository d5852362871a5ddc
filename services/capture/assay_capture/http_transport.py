"""Sends events to the gateway (`capture.url`) instead of Redis.

Requests are `POST /v1/events` with NDJSON and gzip, one at a time over one connection.

An event arrives at least once: after a lost connection, a time-out or a 5xx it is unknown which events of a request
were stored, so the same bytes are sent again, and `event_id` prevents a second row. An event that the gateway rejects
is counted by rule and never sent again, and so is one that is too large by itself. Everything else is sent again.
"""

import re
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from assay_capture.entry_queue import Entry
from assay_capture.gateway_connection import Address, Answer, GatewayConnection, address_of
from assay_capture.masters import PasswordFileError, password_in
from assay_capture.stats import log
from assay_capture.transport import Outcome
from assay_schema.settings import CaptureSettings, SettingsError

#: Most events of a request; the gateway takes 10,000.
REQUEST_ENTRIES = 5_000
#: Level of gzip: a higher one costs more time than it saves.
COMPRESSION = 1
#: Longest `Retry-After` that is honoured, in seconds. A larger one would hold events back for hours.
RETRY_AFTER_MAX_S = 60.0
#: Rule of an event that is too large by itself.
TOO_LARGE = "too_large"
#: Rule of the rejections that an answer counts but does not list.
UNLISTED = "not_listed"
#: Rule of a rejection whose own is in no known form.
UNNAMED = "unnamed"

_HEADERS = {
    "Content-Type": "application/x-ndjson",
    "Content-Encoding": "gzip",
    "Accept": "application/json",
    "User-Agent": "assay-capture",
}
_KEY_ID = re.compile(r"assay_[a-z]+_([A-Za-z0-9]{1,32})_")
_RULE = re.compile(r"[a-z0-9_]{1,64}")
#: Details that are logged: a field and what is valid, as the gateway writes them.
_DETAIL = re.compile(r"[A-Za-z0-9_*]+(?:\.[A-Za-z0-9_*]+)*: [ -~]{1,300}")


class HttpTransport:
    """Sends batches over one connection.

    Not thread-safe; blocks up to `capture.timeout_s` for each step of a request.
    """

    receiver = "the gateway"
    advice: Mapping[str, str] = {
        "down": "check capture.url (ASSAY_CAPTURE_URL), for TLS capture.tls_ca_file, and that the gateway is up",
        "busy": "it asks to wait; if this lasts, check that the scrubber runs, and the rate of the key",
        "refused": "make a key with `assay keys create` and set capture.key_file or capture.key (ASSAY_CAPTURE_KEY)",
        "not_gateway": "check that capture.url (ASSAY_CAPTURE_URL) is the gateway's own address, and any proxy in between",
        "key_file": "create the file or correct the setting (ASSAY_CAPTURE_KEY_FILE); it is read again at each attempt",
    }
    states: Mapping[str, str] = {"not_gateway": "down", "key_file": "refused"}
    longest_pause_s = 5.0
    slow_answer_s = 1.0
    batch_bytes = 1024 * 1024

    def __init__(self, settings: CaptureSettings) -> None:
        """Raises `SettingsError` for an unusable address, and without a key."""
        self._settings = settings
        self._address: Address = address_of(settings)
        if settings.key_file is None and not settings.key.get_secret_value():
            raise SettingsError(
                "capture.url needs a key: set capture.key_file or capture.key (ASSAY_CAPTURE_KEY_FILE, ASSAY_CAPTURE_KEY)"
            )
        self._connection = GatewayConnection(self._address, settings)
        #: Largest body that is sent, before compression. Halved by each 413.
        self._body_bytes = self.batch_bytes
        self._warned = False

    def send(self, entries: list[Entry], measure: tuple[int, ...] = ()) -> Outcome:  # noqa: ARG002  (nothing to measure)
        """Send entries in order, in as many requests as needed. The first one that fails ends the batch."""
        rejected: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        begin = 0
        while begin < len(entries):
            end = self._end_of_body(entries, begin)
            outcome = self._request(entries[begin:end])
            rejected.update(outcome.rejected)
            reasons = {**outcome.reasons, **reasons}
            if outcome.problem == TOO_LARGE:  # smaller bodies from here on
                continue
            if outcome.problem is not None:
                return Outcome(
                    entries[begin:],
                    outcome.problem,
                    outcome.detail,
                    rejected=rejected,
                    reasons=reasons,
                    retry_after_s=outcome.retry_after_s,
                )
            begin = end
        return Outcome(rejected=rejected, reasons=reasons)

    def close(self) -> None:
        """Close the connection. In a forked child this closes only the child's copy."""
        self._connection.close()

    def _end_of_body(self, entries: list[Entry], begin: int) -> int:
        size, end = 0, begin
        while end < min(len(entries), begin + REQUEST_ENTRIES):
            size += len(entries[end][1]) + 1
            if end > begin and size > self._body_bytes:
                break
            end += 1
        return end

    def _request(self, entries: list[Entry]) -> Outcome:
        from http.client import HTTPException

        try:
            key = self._key()
            self._warn_of_exposure()
            if not key.isascii() or not key.isprintable():
                return Outcome(entries, "refused", "the key has characters that no key has")
            body = b"\n".join([data for _, data in entries])
            answer = self._connection.post(_gzipped(body), {**_HEADERS, "Authorization": f"Bearer {key}"})
        except PasswordFileError as error:
            return Outcome(entries, "key_file", str(error))
        except (OSError, HTTPException, ValueError) as error:
            return Outcome(entries, "down", f"{self._address.place}: {_reason(error)}")
        return self._meaning(answer, entries, len(body), key)

    def _meaning(self, answer: Answer, entries: list[Entry], size: int, key: str) -> Outcome:
        status, detail = answer.status, f"{self._address.place} answered {answer.status}"
        if status in (200, 400) and (verdict := _verdict(_document(answer.body), _lines_in(entries))) is not None:
            return verdict
        if status == 413:
            return self._smaller(entries, size)
        if status in (429, 503):
            return Outcome(entries, "busy", detail, retry_after_s=_seconds(answer.retry_after))
        if status in (401, 403):
            known = _KEY_ID.match(key)
            return Outcome(entries, "refused", f"{detail} to key {known[1] if known else 'of an unknown form'}")
        if status == 408 or status >= 500:
            return Outcome(entries, "down", detail, retry_after_s=_seconds(answer.retry_after))
        return Outcome(entries, "not_gateway", detail)

    def _smaller(self, entries: list[Entry], size: int) -> Outcome:
        """Halve the size of bodies. One event that is too large by itself is rejected."""
        if len(entries) == 1:
            return Outcome(rejected={TOO_LARGE: 1})
        self._body_bytes = max(1, size // 2)
        return Outcome(entries, TOO_LARGE)

    def _key(self) -> str:
        """Return the key, from its file at each request, so that it may be changed while the program runs."""
        file = self._settings.key_file
        return password_in(file, "capture.key_file") if file else self._settings.key.get_secret_value()

    def _warn_of_exposure(self) -> None:
        if self._address.exposes_key and not self._warned:
            self._warned = True
            with suppress(Exception):  # a broken log handler of the host program must not stop the sending
                log.warning(
                    "capture.url is http://: the key and the events cross the network unencrypted; use https://"
                )


def _gzipped(body: bytes) -> bytes:
    packer = zlib.compressobj(COMPRESSION, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def _lines_in(entries: list[Entry]) -> int:
    """Return the number of lines that the gateway counts.

    It skips blank ones, which a broken disk may leave in a spool.
    """
    return sum(1 for _, data in entries if data and not data.isspace())


def _reason(error: Exception) -> str:
    """Return what happened, without anything that the server sent."""
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__} {error.strerror}"
    return type(error).__name__


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _verdict(document: dict[str, Any], sent: int) -> Outcome | None:
    """Return the rejected events by rule, or None if this is no answer about exactly the events that were sent."""
    accepted, listed, total = (document.get(name) for name in ("accepted", "rejected", "rejected_total"))
    if type(accepted) is not int or type(total) is not int or not isinstance(listed, list) or accepted + total != sent:
        return None
    rules: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for each in listed[:total]:
        if isinstance(each, dict):
            rules[rule := _rule(each.get("rule"))] += 1
            detail = each.get("detail")
            if rule != UNNAMED and isinstance(detail, str) and _DETAIL.fullmatch(detail):
                reasons.setdefault(rule, detail)
    if rest := total - rules.total():
        rules[UNLISTED] = rest
    return Outcome(rejected=rules, reasons=reasons)


def _rule(rule: Any) -> str:
    return rule if isinstance(rule, str) and _RULE.fullmatch(rule) else UNNAMED


def _seconds(text: str | None) -> float | None:
    """Return the seconds of `Retry-After`, which may also be a date (RFC 9110)."""
    if not text:
        return None
    if text.strip().isdecimal():
        return min(RETRY_AFTER_MAX_S, float(text.strip()))
    import time
    from email.utils import parsedate_to_datetime

    try:
        return min(RETRY_AFTER_MAX_S, max(0.0, parsedate_to_datetime(text).timestamp() - time.time()))
    except (ValueError, TypeError, OverflowError):
        return None
