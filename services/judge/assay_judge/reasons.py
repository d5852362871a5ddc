"""Why an answer has no verdict, in words for people, with the setting that mends it. Pure."""

import re
from collections import Counter
from collections.abc import Mapping

_TIME = "no reply came in time (judge.request_timeout_s)"
_LIMIT = "the API's rate limit was used up (judge.requests_per_minute, judge.tokens_per_minute)"
_REQUEST = "the API did not take the request (judge.model, judge.max_output_tokens, judge.json_mode)"
_LONG = "the answer and its passages are too long (judge.max_input_bytes)"
_BUSY = "the API was busy or failed"
_FOREIGN = "the reply was none of such an API (judge.base_url)"
_STOPPED = "judging was interrupted, and it is not known whether the call was billed"
#: By the first word of what a score's `detail` says.
REASONS = {
    "ReplyNotJson": "the reply was no JSON (judge.model, judge.json_mode)",
    "ReplyMisfit": "the reply did not have the form that was asked for (judge.model, judge.json_mode)",
    "ReplyUnanchored": "the reply did not keep to what the answer says (judge.model)",
    "ReplyTruncated": "the reply was cut short (judge.max_output_tokens)",
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
    """The reason for what a call's failure, or a score's `detail`, names; the name itself where it has no words here."""
    word = re.split(r"[ :]", detail.removeprefix("Batch: "), maxsplit=1)[0]
    return REASONS.get(word) or (_BUSY if _SERVER.match(word) else detail or "no reason is known")


def reasons(details: Mapping[str, int]) -> list[tuple[int, str]]:
    """How often which reason was met, the commonest first."""
    counts: Counter[str] = Counter()
    for detail, count in details.items():
        counts[reason(detail)] += count
    return [(count, said) for said, count in counts.most_common()]
