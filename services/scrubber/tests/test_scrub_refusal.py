"""The refusal policy of tool servers: the floor always holds, and a misspelt name never means less protection."""

import orjson
import pytest

from assay_runtime.entries import Entry
from assay_schema.published import examples
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import FLOOR, Policy, PolicyError
from assay_scrubber.process import Processor
from assay_scrubber.refusal import RefusalPolicy, check, declared
from assay_scrubber.taxonomy import Category


@pytest.mark.parametrize("category", sorted(FLOOR))
def test_the_floor_is_blocked_under_any_policy(category: Category) -> None:
    for policy in (RefusalPolicy(), RefusalPolicy.of([]), RefusalPolicy.of(["health"])):
        refused = check([category], policy)
        assert refused is not None
        assert refused.blocked == {category}


def test_a_call_that_touches_nothing_blocked_may_run() -> None:
    assert check(["contact", "health"], RefusalPolicy()) is None
    assert check([], RefusalPolicy.of(["contact"])) is None


def test_the_agent_learns_the_blocked_categories_and_no_others_and_the_row_has_both() -> None:
    refused = check(["contact", "health", "location"], RefusalPolicy.of(["health"]))
    assert refused is not None
    envelope = refused.envelope()
    assert (envelope["status"], envelope["error"]["kind"]) == ("refused", "pii_blocked")
    assert "health" in envelope["error"]["message"]
    assert "contact" not in str(envelope)
    assert refused.summary() == {"pii_attempted": ["contact", "health", "location"], "pii_blocked": ["health"]}
    assert declared(refused.summary()) == (["contact", "health", "location"], ["health"])


@pytest.mark.parametrize("name", ["helth", "", "Health", "all"])
def test_an_unknown_category_stops_the_start_and_lists_the_twelve(name: str) -> None:
    with pytest.raises(PolicyError) as refused:
        RefusalPolicy.of(["health", name])
    assert all(category in str(refused.value) for category in Category)
    with pytest.raises(PolicyError):
        check([name], RefusalPolicy())


@pytest.mark.parametrize(
    "summary", [None, [], {}, {"pii_attempted": "health"}, {"pii_attempted": [7, "ssn 078-05-1120"]}]
)
def test_what_a_producer_states_instead_of_categories_is_left_out(summary: object) -> None:
    assert declared(summary) == ([], [])


@pytest.mark.parametrize(("status", "attempted"), [("refused", ["contact", "health"]), ("error", ["contact"])])
def test_a_refused_call_has_the_attempted_and_the_blocked_categories_in_its_row(
    status: str, attempted: list[str]
) -> None:
    document = next(orjson.loads(each.document_bytes) for each in examples("capture") if each.name == "tool-call-full")
    document["payload"] |= {
        "status": status, "error_kind": "pii_blocked", "args_summary": {"to": "ann@example.com"},
        "result_summary": {"pii_attempted": ["health"], "pii_blocked": ["health"]},
    }  # fmt: skip
    [outcome] = Processor(Scrubber(Policy())).process(iter([Entry("1795300000000-7", orjson.dumps(document))]))
    assert outcome.event is not None
    stored = orjson.loads(outcome.event)
    assert (stored["pii_attempted"], stored["pii_blocked"]) == (attempted, attempted)
