"""One scrubber serves many threads, and how a document is cut does not change what becomes of its values."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_scrubber.engine import Scrubber

SCRUBBER = Scrubber()
LEAVES = st.one_of(
    st.sampled_from(
        [
            "write to ann@example.com",
            "call +1 555 123 4567",
            "4111 1111 1111 1111",
            "ssn 123-45-6789",
            "nothing here",
            "5551234567",
            "",
        ]
    ),
    st.integers(min_value=0, max_value=10**17),
    st.sampled_from([4111111111111111, 5551234567, None, True, 1.5]),
)
KEYS = st.sampled_from(["phone", "note", "card", "id", "customerPhone", "text"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@settings(max_examples=100)
def test_an_object_scrubbed_member_by_member_is_the_object_scrubbed_whole(document: dict[str, Any]) -> None:
    parts = [SCRUBBER.scrub_json({key: value}) for key, value in document.items()]
    whole = SCRUBBER.scrub_json(document)
    assert whole.value == {key: part.value[key] for part, key in zip(parts, document, strict=True)}
    assert sum(whole.counts.values()) == sum(sum(part.counts.values()) for part in parts)


@given(st.lists(VALUES, max_size=8), st.integers(0, 8))
@settings(max_examples=100)
def test_a_list_cut_anywhere_gives_the_same_items(items: list[Any], cut: int) -> None:
    whole = SCRUBBER.scrub_json(items).value
    assert SCRUBBER.scrub_json(items[:cut]).value + SCRUBBER.scrub_json(items[cut:]).value == whole


@pytest.mark.slow
def test_threads_that_share_a_scrubber_get_what_one_alone_gets(scrub_corpus: ModuleType) -> None:
    texts = [labelled.text for labelled in scrub_corpus.labelled(300)]
    shared = Scrubber()
    alone = {text: Scrubber().scrub(text) for text in texts}
    random.Random(5).shuffle(texts)  # noqa: S311  # an order that differs from the corpus's
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(shared.scrub, texts * 4)) == [alone[text] for text in texts * 4]
        documents = [{"note": text, "inner": [text, json.dumps({"q": text})]} for text in texts]
        expected = [Scrubber().scrub_json(document) for document in documents]
        assert list(pool.map(shared.scrub_json, documents)) == expected
