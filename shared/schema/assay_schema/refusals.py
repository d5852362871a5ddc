"""Whether a text answers nothing: it is blank, or says no more than that the answer is not known. Pure and deterministic.

Rules over sentences, not a model: English first, and the plain "I don't know" of some other languages. A refusal in other words passes for
an answer, which a judge then finds without claims or without support. A sentence that says anything else makes the text an answer:
"I don't know the exact year, but it was in the nineties" is one.
"""

import re

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
_MARKS = re.compile(r"[*_`#>~\"()\[\]]+")
_SPACE = re.compile(r"\s+")
#: Sentences, and clauses that may say something else than the one before: "I'm sorry, but ...".
_PARTS = re.compile(
    r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+|[;:—]\s+|,?\s+\b(?:but|however|yet|although|aber|mais|pero)\b,?\s+"
)


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_NOT = _any(
    "(?:do|does|did|can|could|will) not", "cannot", "(?:do|does|did|ca|could|wo)n't", "(?:am|'m|was|were) (?:unable|not able) to"
)  # fmt: skip
_SOURCES = (
    r"(?:(?:the|these|this|my|our|any|your) )?(?:(?:provided|given|available|retrieved|supplied|above|search) )?"
    r"(?:documents?|documentation|passages?|context|sources?|texts?|excerpts?|articles?|materials?|information|data"
    r"|results?|knowledge base|files?)"
    r"(?: (?:provided|given|above|available|i have|that (?:i|you) \w+))?"
)
_FIRST = _any(
    "(?:unfortunately|sorry|hello|hi),? ",
    "(?:i'm|i am|we're|we are) (?:sorry|afraid),? (?:that )?",
    "as an ai[^,]{0,40},? ",
    "(?:based on|from) [^,]{0,80}, ",
)
_FOUND = (
    r"(?: (?:was|were|is|are|has been|have been))?(?: (?:found|available|given|provided|returned|known)\b"
    r"| (?:for|in|on|about|of|to|that) |$)"
)
#: That the answer is not known.
_UNKNOWN = re.compile(
    f"^{_FIRST}*"
    + _any(
        rf"(?:i|we)(?: \w+ly)? {_NOT}(?: \w+ly)? (?:know|find|answer|tell|say|help|assist|have|see|locate|provide|give|determine|comment"
        r"|respond|discuss|recall|be sure)\b",
        r"(?:i'm|i am|we're|we are) (?:not (?:sure|certain|able|allowed)|unsure|unable)\b",
        r"(?:i|we) have no (?:idea|information|answer|data|knowledge|clue)\b",
        r"(?:there (?:is|was|are|were) |i found |we found )?(?:no|not any|not enough|insufficient) (?:\w+ ){0,2}?"
        rf"(?:answers?|information|passages?|documents?|results?|context|data|mention|match(?:es)?){_FOUND}",
        rf"nothing (?:in {_SOURCES}|was found|is known|relevant)\b",
        rf"{_SOURCES} {_NOT} (?:\w+ )?(?:mention|contain|include|say|state|specify|provide|answer|address|cover|describe|discuss|explain"
        r"|give|have|tell)\b",
        r"(?:it|that|this|the answer|(?:the|this) information)(?:'s| is| was) (?:not|unknown|unclear|nowhere)(?: \w+)? ?"
        rf"(?:known|mentioned|given|provided|stated|specified|available|found|clear|in {_SOURCES})?\s*(?:\.|!|$|in |by |from |to me)",
        r"(?:unable|not able) to (?:\w+ )?(?:answer|find|help|determine|provide|locate|say)\b",
        r"ich (?:weiß|weiss)(?: \w+)? nicht\b",
        r"(?:dazu|darüber|hierzu) (?:liegen|habe|finde)\b.{0,40}\bkeine\b",
        r"(?:es gibt )?keine (?:antwort|informationen?)\b",
        r"je ne sais pas\b",
        r"(?:yo )?no (?:lo )?sé\b",
        r"non (?:lo )?so\b",
        r"(?:eu )?não sei\b",
        r"ik weet (?:het|dat) niet\b",
    )
)
#: No answer wherever it stands, if nothing comes behind it.
_POLITE = re.compile(
    r"(?:hi|hello|hey|sorry|thanks|thank you|my apologies|i apologi[sz]e|apologies|unfortunately|as an ai(?: \w+){0,3}"
    r"|(?:i'm|i am|we're|we are) (?:\w+ )?(?:sorry|afraid))(?: there)?(?: (?:for|about) (?:the|that|this|any|your) \w+)?",
)
#: No answer beside the words that there is none; alone it may well be one.
_ADVICE = re.compile(
    r"^(?:please|let me know|feel free|if you|you (?:can|could|may|might|should|will have to)|try|contact|consult|ask|check|refer to|see"
    r"|i(?:'d| would) be (?:happy|glad)|i hope|is there anything)\b",
)
_NONE_AT_ALL = re.compile(
    _any(
        "n/?a", "none", "null", "nil", "unknown", "idk", "no answer", "no idea", "not sure", "no comment", "not found", "no results?",
        "知らない", "わかりません", "分かりません", "不知道", "我不知道", "모르겠습니다",
    )
)  # fmt: skip


def is_refusal(text: str) -> bool:
    """Whether a text gives no answer: it is blank or without a letter or digit, or all it says is that the answer is not known.

    Greetings, apologies, advice where else to ask and questions in return are no answer either.
    """
    plain = _SPACE.sub(" ", _MARKS.sub(" ", text.translate(_QUOTES).replace("\n", "\n. "))).strip().casefold()
    if not any(character.isalnum() for character in plain):
        return True
    parts = [part.strip(" .,!。！-–") for part in _PARTS.split(plain)]
    said = [part for part in parts if any(character.isalnum() for character in part) and not _is_polite(part)]
    unknown = [part for part in said if _NONE_AT_ALL.fullmatch(part) or _UNKNOWN.match(part)]
    return not said or (bool(unknown) and all(part in unknown or _ADVICE.match(part) for part in said))


def _is_polite(part: str) -> bool:
    return part.endswith(("?", "？")) or bool(_POLITE.fullmatch(part))
