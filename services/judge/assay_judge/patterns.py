"""Detect instructions to a model in captured text, in their usual forms. Pure."""

from assay_runtime.expressions import compiled, found

__all__ = ["compiled", "found", "instructs"]

#: Text that addresses its reader, the judge or another model, instead of being about its subject. These are only the
#: usual forms in English and German: a flag for review, not a protection. The checks of `evidence` protect a verdict.
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
    """True if a text gives instructions to a model in one of the usual forms."""
    return found(_INSTRUCTION, text)
