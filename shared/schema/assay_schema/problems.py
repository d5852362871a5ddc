"""Describe validation problems for people. Pure."""

from typing import Any

_WORDS = {
    "missing": "is missing",
    "model_type": "must be an object of keys and values",
    "model_attributes_type": "must be an object of keys and values",
    "dict_type": "must be an object of keys and values",
    "string_type": "must be text (in quotes)",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
}


def in_words(problem: Any) -> str:
    """Describe one problem of a `ValidationError`, without its location, and never with a value."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    return _WORDS.get(problem["type"]) or message.replace("Input should be", "must be", 1)
