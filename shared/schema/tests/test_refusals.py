"""Which texts answer nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_schema.refusals import is_refusal

REFUSALS = (
    "",
    "  \n",
    "...",
    "N/A",
    "None.",
    "I don't know.",
    "I don’t know",
    "I do not know the answer to that.",
    "**I don't know.**",
    "I'm sorry, but I can't help with that.",
    "I am sorry, I cannot answer this question.",
    "Sorry! I could not find anything about this. Please contact support.",
    "As an AI language model, I do not have access to that.",
    "Unfortunately, I was unable to find an answer.",
    "I'm not sure. Could you rephrase the question?",
    "I have no information about this topic.",
    "There is no information about this in the documents.",
    "No relevant passages were found.",
    "No answer was found.",
    "The provided context does not mention the price.",
    "The documents do not contain an answer; please ask your administrator.",
    "Based on the provided documents, I cannot answer this question.",
    "Nothing in the documentation of the standard library answers this.",
    "This is not mentioned in the passages.",
    "The answer is not known.",
    "Unable to answer.",
    "What do you mean?",
    "Hello! How can I help you today?",
    "I cannot find that, but you can check the manual.",
    "Ich weiß es nicht.",
    "Je ne sais pas.",
    "No lo sé.",
    "我不知道。",
)
ANSWERS = (
    "42",
    "Yes.",
    "No.",
    "Paris",
    "No, it does not.",
    "Not in version 3; use `dict.items()`.",
    "Use time.perf_counter.",
    "The function cannot find the file and raises FileNotFoundError.",
    "The context manager does not provide a close method.",
    "I don't know the exact year, but it was in the nineties.",
    "I cannot find a price, but shipping costs 5 dollars.",
    "No results are cached by default.",
    "None of the valves close at night.",
    "You can check a path with os.path.exists.",
    "If you need a lock, use threading.Lock.",
    "Please call collect() and then close().",
    "time.perf_counter: Performance counter for benchmarking.\ntime.monotonic: Monotonic clock, cannot go backward.",
    "The method is not thread-safe.",
    "Hello, the answer is 42.",
    "Sorry for the delay, it is 42.",
    "Thanks, use gzip.open.",
    "Data does not include VAT. The total is 12.",
)


@pytest.mark.parametrize("text", REFUSALS)
def test_a_text_that_answers_nothing_is_a_refusal(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_a_text_that_says_anything_else_is_an_answer(text: str) -> None:
    assert not is_refusal(text)


@given(st.text(max_size=300))
def test_any_text_is_one_or_the_other_and_whitespace_around_it_changes_nothing(text: str) -> None:
    assert is_refusal(text) is is_refusal(f"\n {text} \n")
