"""Rows for Vertex AI in the converters of its own SDK. Run where it is installed: `pip install google-cloud-aiplatform pandas`.

`ASSAY_SESSIONS_STORE` names a store of an agent whose sessions are converted too, and `ASSAY_SESSIONS_FROM` the agent.
"""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_sessions.document import document as session_document
from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from assay_sessions.vertex import AGENT_KEYS, Refusal, vertex, vertex_agent
from tests.support.session_documents import call, document

Json = dict[str, Any]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
TALKS = [
    document("0012", "2024", session_id="ses_0"),
    document(
        "List.", "", "Run.", "It fails.", session_id="ses_1",
        calls=(call("glob", 2, call_id="c1"), call("bash", 4, "no", status="error", exit_code=3, args={"command": "x"})),
    ),
]  # fmt: skip


@pytest.fixture
def sdk() -> Any:
    pytest.importorskip("agentplatform", reason="needs google-cloud-aiplatform")
    pytest.importorskip("pandas", reason="needs google-cloud-aiplatform")
    from agentplatform._genai import _evals_data_converters

    return _evals_data_converters


def talks() -> list[Json]:
    store = os.environ.get("ASSAY_SESSIONS_STORE")
    if not store:
        return TALKS
    found = READERS[os.environ.get("ASSAY_SESSIONS_FROM", "opencode")].read(Path(store), None)
    return TALKS + [session_document(each) for each in found if isinstance(each, Transcript)]


def loaded(path: Path, rows: list[Json]) -> Any:
    """Read rows from a file as the SDK does."""
    import pandas as pd

    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return pd.read_json(path, lines=True).to_dict(orient="records")


def test_every_row_is_accepted_and_nothing_of_it_is_lost(sdk: Any, tmp_path: Path) -> None:
    rows = [row for talk in talks() if not isinstance(row := vertex_agent(talk), Refusal)]
    raw = loaded(tmp_path / "rows.jsonl", rows)
    schema = sdk.auto_detect_dataset_schema(raw)
    assert schema == sdk.EvalDatasetSchema.FLATTEN
    cases = sdk.get_dataset_converter(schema).convert(raw).eval_cases
    assert len(cases) == len(rows)
    for case, row in zip(cases, rows, strict=True):
        assert case.agent_data.model_dump(mode="json", exclude_none=True) == row["agent_data"]
        assert case.prompt.model_dump(exclude_none=True) == row["prompt"]
        assert case.responses[0].response.model_dump(exclude_none=True) == row["response"]
        history = [each.content.model_dump(exclude_none=True) for each in case.conversation_history or []]
        assert history == row["conversation_history"]
        assert not (case.reference and case.reference.response)


def test_the_plain_rows_are_accepted_with_their_texts_and_without_a_reference(sdk: Any, tmp_path: Path) -> None:
    rows = [row for talk in talks() if not isinstance(row := vertex(talk), Refusal)]
    raw = loaded(tmp_path / "rows.jsonl", rows)
    schema = sdk.auto_detect_dataset_schema(raw)
    assert schema == sdk.EvalDatasetSchema.GEMINI
    for case, row in zip(sdk.get_dataset_converter(schema).convert(raw).eval_cases, rows, strict=True):
        assert case.prompt.model_dump(exclude_none=True) == row["request"]["contents"][-1]
        assert case.responses[0].response.model_dump(exclude_none=True) == row["response"]["candidates"][0]["content"]
        assert not (case.reference and case.reference.response)


def test_the_allowed_keys_are_those_of_the_sdk(sdk: Any) -> None:
    from agentplatform._genai.types import evals

    models = {"agent_data": "AgentData", "agent": "AgentConfig", "turn": "ConversationTurn", "event": "AgentEvent"}
    found = {name: frozenset(getattr(evals, model).model_fields) for name, model in models.items()}
    assert {name: AGENT_KEYS[name] - found[name] for name in models} == dict.fromkeys(models, frozenset())
    assert (
        not sdk.get_dataset_converter(sdk.EvalDatasetSchema.FLATTEN)
        .convert([{"agent_data": {"agents": {}, "turns": [], "unknown": 1}, "prompt": "x", "response": "y"}])
        .eval_cases[0]
        .agent_data
    )
