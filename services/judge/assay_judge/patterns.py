"""Regular expressions on captured text: RE2's, whose time grows with the text alone, whatever pattern or text. Pure."""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1_000)
def compiled(pattern: str) -> Any:
    """A pattern, ready to search with. Raises `ValueError` that says what RE2 does not take."""
    import re2

    options = re2.Options()
    options.log_errors = False  # its messages would go to stderr
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("ascii", "replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"not a regular expression: {reason} (patterns are RE2's: no look-around, no \\1)") from None


def found(pattern: str, text: str) -> bool:
    """Whether a pattern is anywhere in a text."""
    return compiled(pattern).search(text.encode(errors="replace")) is not None


#: Text that talks to whoever reads it, be it the judge or another model, and not about its subject. These are the usual forms in English
#: and German, no more: a flag to look at, not a wall. What keeps a verdict honest are the checks of `evidence`.
_INSTRUCTIONS = (
    r"\b(?:ignore|disregard|forget|override)\W+(?:\w+\W+){0,4}(?:instructions?|rules|prompts?|directions|guidelines)\b",
    r"\b(?:do not|don['’]t|never)\W+(?:follow|obey)\W+(?:\w+\W+){0,4}(?:instructions?|prompts?)\b",
    r"\b(?:claims?|statements?)\W+(?:\w+\W+){0,2}(?:of|in|from)\W+(?:the|this|that)\W+(?:answer|response|reply)\W+(?:is|are)\b",
    r"\b(?:all|every|each)\W+(?:claims?|statements?)\W+(?:\w+\W+){0,6}(?:is|are)\W+(?:\w+\W+)?supported\b",
    r"\b(?:claims?|statements?)\W+(?:is|are)\W+(?:\w+\W+)?(?:supported|backed|verified)\W+by\W+the\W+(?:passage|context|document)",
    r"\b(?:mark|rate|score|grade|label|judge|consider|treat|classify|count|bewerte)\W+(?:\w+\W+){0,8}(?:as|als)\W+(?:\w+\W+)?supported\b",
    r"\b(?:say|reply|respond|answer|return|output|with)\W+(?:with\W+)?(?:the\W+)?(?:verdict\W+)?supported\b",
    r"\b(?:its|the|your|a)\W+verdict\W+(?:is|must be|should be)\W+(?:\w+\W+)?supported\b",
    r"\b(?:verdict|relevancy|cited_ok)\"?\W{1,6}(?:supported|yes|true)\b",
    r"\b(?:dear|attention|note to|message to|instructions? (?:to|for)|hey)\W+(?:the\W+)?(?:judge|grader|evaluator|assistant|llm|ai)\b",
    r"\byou are (?:now |no longer )(?:a|an|the)\b",
    r"\b(?:reply|respond|answer|return|output)\W+(?:only\W+)?(?:with\W+)?(?:an\W+)?(?:empty|no)\W+(?:list|claims?|array|json)\b",
    r"\b(?:new|updated|real|hidden|system) (?:instructions?|prompt)\s*:",
    r"</?(?:system|passages?|instructions?|user|assistant)>|\[/?INST\]|<\|im_(?:start|end)\|>",
    r"(?m:^\s*(?:human|assistant|system)\s*:\s)",
    r"\b(?:ignoriere|vergiss|missachte)\W+(?:\w+\W+){0,5}(?:anweisung|regeln|vorgabe)",
)
_INSTRUCTION = f"(?i){'|'.join(_INSTRUCTIONS)}"


def instructs(text: str) -> bool:
    """Whether a text gives instructions to a model, as far as its usual forms tell."""
    return found(_INSTRUCTION, text)
