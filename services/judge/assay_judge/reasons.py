"""Explain in plain words why an answer has no verdict, and the setting that fixes it. Pure."""

import re
from collections import Counter
from collections.abc import Mapping

_TIME = "the reply did not arrive in time (judge.request_timeout_s)"
_LIMIT = "the API's rate limit was exhausted (judge.requests_per_minute, judge.tokens_per_minute)"
_REQUEST = "the API rejected the request (judge.model, judge.max_output_tokens, judge.json_mode)"
_LONG = "the answer and its passages are too long (judge.max_input_bytes)"
_BUSY = "the API was busy or failed"
_FOREIGN = "the reply was not from a compatible API (judge.base_url)"
_STOPPED = "judging was interrupted; the call may have been billed"
#: By the first word of a score's `detail`.
REASONS = {
    "ReplyNotJson": "the reply was not JSON (judge.model, judge.json_mode)",
    "ReplyMisfit": "the reply did not have the requested form (judge.model, judge.json_mode)",
    "ReplyUnanchored": "the reply was not about the answer (judge.model)",
    "ReplyTruncated": "the reply was truncated (judge.max_output_tokens)",
    "ReplyRefused": "the model refused to judge (judge.model)",
    "ReplyUnreadable": _FOREIGN,
    "ReplyTooLong": _FOREIGN,
    "APITimeoutError": _TIME,
    "APIConnectionError": "no connection to the API (judge.base_url)",
    "RateLimitError": _LIMIT,
    "Http429": _LIMIT,
    "RequestTooLargeError": _LONG,
    "ContentTooLargeError": _LONG,
    "Http413": _LONG,
    "InputTooLarge": _LONG,
    "BadRequestError": _REQUEST,
    "UnprocessableEntityError": _REQUEST,
    "Http400": _REQUEST,
    "Http422": _REQUEST,
    "Interrupted": _STOPPED,
}
_SERVER = re.compile(r"Http(5\d\d|408|409)|Internal|Overloaded|Service|Deadline|Gateway|Conflict|RequestTimeout")


def reason(detail: str) -> str:
    """Return the reason for a call's failure or a score's `detail`; the text itself if unknown."""
    word = re.split(r"[ :]", detail.removeprefix("Batch: "), maxsplit=1)[0]
    return REASONS.get(word) or (_BUSY if _SERVER.match(word) else detail or "unknown reason")


def reasons(details: Mapping[str, int]) -> list[tuple[int, str]]:
    """Count reasons, the most common first."""
    counts: Counter[str] = Counter()
    for detail, count in details.items():
        counts[reason(detail)] += count
    return [(count, said) for said, count in counts.most_common()]
