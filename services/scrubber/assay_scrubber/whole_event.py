"""Scrub the payload of an event: its paths, and what else its kind needs. Pure."""

from collections.abc import Mapping
from typing import Any

from .engine import Scrubber
from .json_scrub import ScrubbedJson
from .paths import scrub_paths
from .session_parts import flat, nested
from .summaries import SUMMARIES, summarise


def scrub_event(scrubber: Scrubber, kind: str, payload: Mapping[str, Any]) -> ScrubbedJson:
    """Return the payload with its outside text scrubbed, and findings by family; the input is unchanged.

    Summaries of tool calls are also masked and shortened. Continuations in a part of a session are scrubbed under the keys of the value
    that they continue. Raises the errors of `scrub_paths`.
    """
    if kind == "session":
        scrubbed = scrub_paths(scrubber, kind, nested(payload))
        return ScrubbedJson(flat(payload, scrubbed.value), scrubbed.counts)
    scrubbed = scrub_paths(scrubber, kind, payload)
    if kind in ("tool_call", "server_event"):
        for name in SUMMARIES:
            if payload.get(name) is not None:
                scrubbed.value[name] = summarise(payload[name], scrubbed.value[name])
    return scrubbed
