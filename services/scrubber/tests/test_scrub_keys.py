"""Values that go because of the key they stand under, whatever they are."""

import json
from typing import Any

import orjson
import pytest

from assay_runtime.entries import Entry
from assay_scrubber.engine import Scrubber
from assay_scrubber.json_scrub import MAX_DEPTH, NestingError, findings_in
from assay_scrubber.keys import key_name
from assay_scrubber.ner import NamesScrubber
from assay_scrubber.paths import scrub_paths
from assay_scrubber.policy import Policy, PolicyError
from assay_scrubber.policy_file import parse_policies
from assay_scrubber.process import Processor
from assay_scrubber.registry import SCRUB_KEY

KEY = b"0123456789abcdef"
GONE = "[REDACTED]"


def scrubber(*keys: str, **more: Any) -> Scrubber:
    return Scrubber(Policy.from_mapping({"scrub_keys": list(keys)} | more, hash_key=KEY))


@pytest.mark.parametrize(
    "key",
    [
        "customer_name",
        "customerName",
        "CustomerName",
        "customer-name",
        "CUSTOMER NAME",
        "customername",
        "ＣustomerName",
    ],
)
def test_a_key_counts_however_it_is_written(key: str) -> None:
    assert scrubber("customer_name").scrub_json({key: "Ann"}) == ({key: GONE}, {"scrub_key": 1})


@pytest.mark.parametrize("key", ["name", "filename", "customer_names", "customer", "the_customer_name"])
def test_a_key_of_which_it_is_only_a_part_does_not(key: str) -> None:
    assert scrubber("customer_name", "file").scrub_json({key: "plain"}) == ({key: "plain"}, {})


@pytest.mark.parametrize("value", ["plain", "", 7, 1.5, True, False, [1, "a"], [], {"a": {"b": 1}}, {}])
def test_the_value_goes_whole_whatever_it_is(value: Any) -> None:
    found = scrubber("note").scrub_json([{"note": value, "rest": "stays"}])
    assert found == ([{"note": GONE, "rest": "stays"}], {"scrub_key": 1})


def test_null_stays_and_so_does_what_is_a_replacement_already() -> None:
    engine = scrubber("note")
    document = {"note": None, "a": [{"note": GONE}, {"note": "[EMAIL]"}, {"note": "[SCRUB_KEY]"}]}
    assert engine.scrub_json(document) == (document, {})
    once = engine.scrub_json({"a": {"note": {"b": 1}}}).value
    assert engine.scrub_json(once) == (once, {})


def test_what_is_under_the_key_is_not_looked_at_and_the_input_stays_as_it_is() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    document = {"note": deep, "mail": "ann@example.com"}
    assert scrubber("note").scrub_json(document).value == {"note": GONE, "mail": GONE}
    assert document["note"] is deep


def test_a_value_too_deep_to_be_hashed_is_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    document, engine = {"note": deep}, scrubber("note", families={"scrub_key": "hash"})
    with pytest.raises(NestingError, match=str(MAX_DEPTH)):
        engine.scrub_json(document)
    while isinstance(deep, list):
        deep = deep.pop()


def test_params_and_arguments_of_tools_lose_it_and_fields_of_the_event_do_not() -> None:
    engine = scrubber("query", "customer", "params")
    payload = {"query": "boots", "params": {"customer": {"id": 1}, "list": [{"Customer": 2}], "flat": 1, "query": "b"}}
    assert scrub_paths(engine, "retrieval", payload) == (
        {"query": "boots", "params": {"customer": GONE, "list": [{"Customer": GONE}], "flat": 1, "query": GONE}},
        {"scrub_key": 3},
    )
    assert scrub_paths(engine, "tool_call", {"args_summary": {"customer": 5, "n": 1}}).value == {
        "args_summary": {"customer": GONE, "n": 1}
    }
    assert scrub_paths(engine, "session", {"request": {"contents": [{"customer": []}]}}).value == {
        "request": {"contents": [{"customer": GONE}]}
    }


def test_its_family_has_actions_like_others() -> None:
    value = {"b": [1], "a": "x"}
    labelled = scrubber("note", families={"scrub_key": "label"}).scrub_json({"note": value}).value
    assert labelled == {"note": "[SCRUB_KEY]"}
    hashing = scrubber("note", families={"scrub_key": "hash"})
    one, two, other = (hashing.scrub_json({"note": v}).value["note"] for v in (value, {"a": "x", "b": [1]}, 7))
    assert one == two != other
    assert one.startswith("[SCRUB_KEY:")
    assert hashing.scrub_json({"note": one}) == ({"note": one}, {})


def test_it_can_never_be_allowed() -> None:
    with pytest.raises(PolicyError, match="scrub_key can never be allowed; remove the keys from scrub_keys instead"):
        scrubber("note", families={"scrub_key": "allow"})
    allowing = scrubber("note", actions={"contact": "allow"})
    assert allowing.scrub_json({"note": "a", "mail": "ann@example.com"}).value == {
        "note": GONE,
        "mail": "ann@example.com",
    }


@pytest.mark.parametrize("keys", ["note", [1], {"note": 1}, ["--"], [""]])
def test_wrong_keys_are_refused(keys: Any) -> None:
    with pytest.raises(PolicyError, match="scrub_keys"):
        Policy.from_mapping({"scrub_keys": keys})


def test_the_fingerprint_covers_them_but_not_how_they_are_written() -> None:
    prints = [Policy(scrub_keys=frozenset(keys)).fingerprint for keys in ((), ("a",), ("a", "b_c"), ("bC", "A"))]
    assert len(set(prints)) == 3
    assert prints[2] == prints[3]
    assert prints[0] == Policy().fingerprint


def test_a_policy_without_keys_has_the_fingerprint_that_it_had() -> None:
    values = {"actions": {"contact": "label"}, "families": {"scrub_key": "refuse"}}
    assert Policy.from_mapping(values).fingerprint == Policy.from_mapping({"actions": {"contact": "label"}}).fingerprint
    assert "scrub_key" not in Policy.from_mapping(values).actions


def test_a_project_adds_keys_to_those_of_all() -> None:
    policies = parse_policies("scrub_keys = ['name']\n[projects.clinic]\nscrub_keys = ['diagnosis']\n")
    assert policies.default.scrub_keys == {"name"}
    assert policies.of("clinic").scrub_keys == {"name", "diagnosis"}


def test_events_are_stored_without_it_or_refused() -> None:
    event = {
        "schema_version": 1, "event_id": "01a20000-0000-7000-8000-000000000000", "kind": "retrieval", "project": "shop",
        "service": "search", "occurred_at": "2026-11-21T00:00:00Z",
        "payload": {"tool_name": "query", "query": "q", "retrieved_slugs": [], "retrieved_chunk_ids": [], "latency_ms": 1,
                    "params": {"customerName": ["Ann"]}},
    }  # fmt: skip
    [outcome] = Processor(scrubber("customer_name")).process(iter([Entry("1795300000000-0", orjson.dumps(event))]))
    assert outcome.event is not None
    stored = orjson.loads(outcome.event)
    assert (stored["payload"]["params"], stored["pii_families"]) == ({"customerName": GONE}, {"scrub_key": 1})
    assert stored["pii_blocked"] == [str(SCRUB_KEY.category)]
    refusing = scrubber("customer_name", families={"scrub_key": "refuse"})
    [outcome] = Processor(refusing).process(iter([Entry("1795300000000-0", orjson.dumps(event))]))
    assert outcome.failure is not None
    assert outcome.failure.error_class == "pii_refused"


def test_explanations_place_it_among_the_documents_values() -> None:
    document = {"a": "ann@example.com", "note": {"x": 1, "y": [2, "bob@example.com"]}, "b": "555-123-4567", "Note": 77}
    rows = [(place, *finding) for place, finding in findings_in(scrubber("note"), document)]
    assert rows == [
        (0, "email", "contact", 0, 15),
        (1, "scrub_key", "contact", 0, 0),
        (4, "phone", "contact", 0, 12),
        (5, "scrub_key", "contact", 0, 2),
    ]


def test_the_scrubber_of_names_removes_them_too() -> None:
    engine = NamesScrubber(Policy(scrub_keys=frozenset({"note"})), recognize=lambda _: iter(()))
    assert engine.scrub_json({"note": 1}).value == {"note": GONE}


def test_a_name_of_a_key_is_its_letters_and_digits() -> None:
    assert key_name("user.HTTP-Id_2 é") == "userhttpid2é"


NESTED = {
    "note": {"x": [1, "}", {"y": ']"'}]},
    "k": 2,
    "Note": 'Ann "X" \\',
    "none": {"note": None},
    "m": [{"NOTE": ""}],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(NESTED),
        json.dumps(NESTED, indent=2),
        json.dumps(NESTED, indent="\t").replace("\n", "\r\n"),
        json.dumps({"log": json.dumps(NESTED)}),
        json.dumps([json.dumps({"log": json.dumps(NESTED, indent=1)})]),
    ],
)
def test_json_in_text_loses_it_and_stays_json(text: str) -> None:
    def inner(written: Any) -> Any:
        found = json.loads(written)
        found = found[0] if isinstance(found, list) else found
        return inner(found["log"] if isinstance(found, dict) else found) if "log" in str(found)[:8] else found

    engine = scrubber("note")
    scrubbed = engine.scrub(text)
    assert inner(scrubbed.text) == {"note": GONE, "k": 2, "Note": GONE, "none": {"note": None}, "m": [{"NOTE": GONE}]}
    assert [finding.family for finding in scrubbed.findings] == ["scrub_key"] * 3
    assert engine.scrub(scrubbed.text) == (scrubbed.text, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('12:00 INFO {"note": "Ann", "n": 1} done', f'12:00 INFO {{"note": "{GONE}", "n": 1}} done'),
        ("{'note': 'Ann', 'n': [True, None]}", f"{{'note': '{GONE}', 'n': [True, None]}}"),
        ("{'note': [True, \"it's\"], 'n': 1}", f"{{'note': '{GONE}', 'n': 1}}"),
        ('{"\\u006eote": 7}', f'{{"\\u006eote": "{GONE}"}}'),
        # cut off: to the end of its last line that is JSON
        ('{"note": {"a": 1, "b\n12:00 INFO next', f'{{"note": "{GONE}"\n12:00 INFO next'),
        ('{"note": [1,\n2,\n12:00 INFO next', f'{{"note": "{GONE}"\n12:00 INFO next'),
        ('{"note": "Ann', f'{{"note": "{GONE}'),
        # what stands round it is found as ever
        ('{"note": "Ann", "to": "ann@example.com"}', f'{{"note": "{GONE}", "to": "{GONE}"}}'),
    ],
)
def test_json_in_a_log_loses_it_too(text: str, expected: str) -> None:
    assert scrubber("note").scrub(text).text == expected
    assert scrubber("note").scrub(expected).text == expected


@pytest.mark.parametrize("text", ['say "note": that is', "note=Ann", "note: Ann", '"notes": "Ann"', '"note" : null'])
def test_what_is_no_json_keeps_it(text: str) -> None:
    assert scrubber("note").scrub(text).text == text


def test_a_hash_is_the_same_in_json_and_in_text() -> None:
    engine = scrubber("note", families={"scrub_key": "hash"})
    for value in ('Ann "X"', {"b": [1, "x\ny"], "a": 1.5}, [True], 7):
        shown = engine.scrub_json({"note": value}).value
        assert json.loads(engine.scrub(json.dumps({"note": value})).text) == shown
        inside = json.loads(engine.scrub(json.dumps({"log": json.dumps({"note": value})})).text)["log"]
        assert json.loads(inside) == shown


@pytest.mark.parametrize("key", ["password1", "new_password2", "Password2", "pwd1", "passwd2", "userPassword3"])
def test_a_numbered_password_is_a_password(key: str) -> None:
    assert Scrubber().scrub_json({key: "h7Xk2pQz9wLmR4tV"}).value == {key: GONE}
