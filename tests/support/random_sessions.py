"""Random sessions for property tests, with messages as readers make them."""

from datetime import UTC, datetime
from functools import partial

from hypothesis import strategies as st

from assay_sessions.record import Call, Message, Transcript

_TEXTS = st.text(max_size=8)
_MOMENTS = st.integers(0, 10**12).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=5,
)
_CALL = partial(
    st.builds,
    Call,
    name=_TEXTS,
    args=st.dictionaries(_TEXTS, _JSON, max_size=3),
    output=_TEXTS,
    status=st.sampled_from(["success", "error", "refused"]),
    error_kind=st.sampled_from([None, "tool_error", "interrupted"]),
    exit_code=st.none() | st.integers(-1, 255),
    call_id=st.none() | st.text(st.characters(), max_size=8),
    truncated=st.booleans(),
    started_at=st.none() | _MOMENTS,
    duration_ms=st.none() | st.floats(0, 1e9),
    child_session_id=st.none() | st.just("s2"),
)
MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), _TEXTS),
    st.builds(Message, st.just("user"), st.just(""), st.tuples(_CALL(executed_by=st.just("user")))),
    st.builds(Message, st.just("model"), _TEXTS, st.lists(_CALL(), max_size=3).map(tuple)),
)
TRANSCRIPTS = st.builds(
    Transcript,
    session_id=st.just("s1"),
    source=st.sampled_from(["codex", "opencode"]),
    created=_MOMENTS,
    updated=_MOMENTS,
    messages=st.lists(MESSAGES, max_size=6).map(tuple),
    title=st.none() | _TEXTS,
    source_version=st.none() | st.just("1.2"),
    model=st.none() | _TEXTS,
    parent_session_id=st.none() | st.just("s0"),
    forked_from=st.none() | st.just("s3"),
    aborted=st.booleans(),
    cost_usd=st.none() | st.floats(0, 1e6),
    tokens=st.dictionaries(st.sampled_from(["input", "output"]), st.integers(0, 10**9)),
    extra=st.dictionaries(st.sampled_from(["agent", "directory"]), _JSON),
)
