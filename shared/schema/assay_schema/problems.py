"""What a problem of validation says to people. Pure."""

from typing import Any

_WORDS = {
    "missing": "is missing",
    "model_type": "must be an object of names and values",
    "model_attributes_type": "must be an object of names and values",
    "dict_type": "must be an object of names and values",
    "string_type": "must be text (in quotes)",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
}


def in_words(problem: Any) -> str:
    """One of a `ValidationError`'s problems, without its place, and never with a value."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    return _WORDS.get(problem["type"]) or message.replace("Input should be", "must be", 1)
