"""Parameters of a URL that have several values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_console.page import Page
from assay_console.pages import PAGES
from assay_console.parameters import checked_parameters
from assay_console.scope import joined, values_of
from assay_operations.errors import OperationError

EVENTS: Page = next(page for page in PAGES if page.name == "events")
_VALUES = st.lists(st.text(st.sampled_from("ab,\\ "), min_size=1, max_size=6).map(str.strip).filter(bool), max_size=4)


@given(_VALUES)
def test_values_with_any_commas_and_backslashes_are_read_back(values: list[str]) -> None:
    assert values_of(joined(values)) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b", ["a", "b"]),
        (" a , ,b,", ["a", "b"]),
        (r"a\,b", ["a,b"]),
        (r"C:\x", [r"C:\x"]),
        (r"a\\,b", ["a\\", "b"]),
        ("", []),
    ],
)
def test_a_comma_separates_unless_it_is_escaped(text: str, values: list[str]) -> None:
    assert values_of(text) == values


def test_a_parameter_that_is_given_twice_has_the_values_of_both() -> None:
    found = checked_parameters(EVENTS, [("service", r"a\,b"), ("service", "c,d")])
    assert values_of(found["service"]) == ["a,b", "c", "d"]


def test_each_value_must_be_a_choice() -> None:
    assert checked_parameters(EVENTS, [("kind", "answer,retrieval")])["kind"] == "answer,retrieval"
    for wrong in ("answer,nothing", r"answer\,retrieval"):
        with pytest.raises(OperationError, match="is not one of"):
            checked_parameters(EVENTS, [("kind", wrong)])
