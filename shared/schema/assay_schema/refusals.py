"""Detect texts that give no answer: blank, or only saying that the answer is unknown.

Pure and deterministic.

Rules over sentences, not a model: English first, and the plain "I don't know" of some other languages. A refusal in
other words counts as an answer, which a judge then finds without claims or without support, and which an evaluation
finds repeated. A sentence that says anything else makes the text an answer: "I don't know the exact year, but it was in
the nineties" is one, and so is a negation ("It is not supported.").
"""

import re

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
_MARKS = re.compile(r"[*_`#>~\"()\[\]]+")
_SPACE = re.compile(r"\s+")
#: Sentences, and clauses that may say something different from the previous one: "I'm sorry, but ...".
_PARTS = re.compile(
    r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+|[;:—]\s+|,?\s+\b(?:but|however|yet|although|aber|mais|pero)\b,?\s+"
)


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_NOT = _any(
    "(?:do|does|did|can|could|will|have|has|would) not", "cannot", "(?:do|does|did|ca|could|wo|have|has|would)n't",
    "(?:(?:am|'m|was|were)|(?:have|has|'ve) been) (?:unable|not able) to", "(?:was|were)n't able to", "(?:have|has|'ve) not been able to",
)  # fmt: skip
_IS_NOT = r"(?:(?:'s| is| was) not|(?: is| was)n't)"
#: Sources of an answer: named so, or described as given. Other data and results may be the answer's subject.
_GIVEN = r"(?:provided|given|available|retrieved|supplied|above|search)"
_SOURCES = (
    rf"(?:(?:(?:the|these|this|my|our|any|your) )?(?:{_GIVEN} )?"
    r"(?:documents?|documentation|docs|passages?|context|sources?|texts?|excerpts?|articles?|materials?|knowledge base|training)"
    rf"|(?:(?:the|these|this|my|our|any|your) )?{_GIVEN} (?:information|data|results?|files?)|my (?:training )?data|my information)"
    rf"(?: (?:{_GIVEN}|i have|that (?:i|you) \w+))?"
)
#: Things that a speaker who cannot answer lacks.
_KNOWLEDGE = (
    r"(?:(?:any|the|this|that|these|those|an?|enough|sufficient|specific|relevant|further|more|such|much|additional|required) )*"
    r"(?:(?:\w+ )?(?:information|details?|answers?|context|idea|knowledge|clue|mention|references?|specifics)"
    r"|access to (?:that|this|it|the|your|real-time|current|up-to-date)|(?:real-time|up-to-date|current)\b)"
)
_ANSWER = (
    r"(?:the (?:answer|information|details?)(?: to your question| you (?:requested|asked for|need))?"
    r"|(?:this|that|the requested) information)"
)
#: Words that stand for the question.
_THAT = (
    r"(?:(?:to|for|with|on|about|of|you with) )*"
    r"(?:that|this|it|these|those|your (?:question|request|query)|th(?:e|is|at) (?:question|topic|request|query|one)|anything|so|such)\b"
)
_END = r"\s*(?:$|[.!;:])"
_FIRST = _any(
    "(?:unfortunately|sorry|hello|hi|regrettably|it (?:seems|appears|looks like)|it looks as if),? (?:that )?",
    "(?:i'm|i am|we're|we are) (?:sorry|afraid),? (?:that )?",
    "(?:lo siento|perdón|(?:es )?tut mir leid|leider|(?:je suis )?désolée?|mi dispiace|desculpe|sinto muito|het spijt me"
    "|申し訳ありませんが|抱歉|对不起)[,，、]? ?",
    "(?:my |our )?apologies,? ",
    "as an ai[^,]{0,40},? ",
    "(?:based on|from|according to) [^,]{0,80}, ",
    "as of [^,]{0,40}? (?=i )",
)
#: Words after "no information" and the like, if they state that there is no answer.
_FOUND = (
    r"(?: (?:was|were|is|are|has been|have been|could be))?"
    rf"(?: (?:found|available|known|provided|given)(?:{_END}| (?:for|in|on|about|regarding|here|concerning) )"
    rf"| (?:in {_SOURCES}|for|on|about|regarding|concerning|to (?:answer|help|determine|say))\b|{_END})"
)
#: The speaker does not know, or refuses to say.
_SPEAKER = (
    rf"(?:i|we)(?:'ve)?(?: \w+ly)? (?:{_NOT}|not)(?: \w+ly)? (?:been able to )?(?:know|tell|determine|recall|be sure)\b",
    (
        rf"i(?:'ve)?(?: \w+ly)? (?:{_NOT}|not)(?: \w+ly)? (?:(?:been able to|want to|wish to) )?"
        r"(?:find|found|answer|say|assist|locate|comment|respond|speak to|verify|confirm)\b"
    ),
    (
        rf"(?:i|we)(?:'ve)?(?: \w+ly)? (?:{_NOT}|not)(?: \w+ly)? (?:been able to )?"
        r"(?:help|discuss|provide|give|have|see|share|offer|process|fulfil?l|do|answer|find|found|locate|assist|comment|respond|verify|confirm)"
        rf"(?: you)?(?:{_END}| (?:{_THAT}|{_KNOWLEDGE}|an? answer|how to))"
    ),
    r"(?:i'm|i am|we're|we are) (?:not (?:sure|certain|able|allowed|aware|familiar)|unsure|unaware|unable)\b",
    (
        rf"(?:i|we) (?:have no|lack)(?: {_KNOWLEDGE}| the| any| enough| sufficient)?"
        r" ?(?:idea|information|answer|data|knowledge|clue|details?|context|way of knowing)\b"
    ),
    r"(?:i|we) only have (?:information|knowledge|data|access)\b",
    r"(?:i|we) can only (?:answer|help|assist|discuss|provide)\b",
    r"(?:i|we)(?: would|'d)? need (?:\w+ ){0,2}(?:information|details?|context)\b",
    r"i (?:must|have to|will have to|(?:would |'d )?prefer|choose) (?:to )?(?:decline|not(?: to)? (?:answer|say|comment|discuss))\b",
    r"i(?:'m| am) (?:just|only) an? [^,.]{0,40} and (?:cannot|can't)\b",
    (
        r"(?:cannot|can't|could not|couldn't|unable to|not able to) (?:\w+ly )?(?:answer|find|help|determine|locate|say|assist|tell)"
        rf"(?:{_END}| (?:{_THAT}|{_KNOWLEDGE}|an? answer|anything|with|from|based))"
    ),
    r"(?:unable|not able) to (?:\w+ )?(?:answer|find|help|determine|provide|locate|say)\b",
)
#: The sources do not contain the answer.
_MATERIAL = (
    (
        r"(?:there (?:is|was|are|were) |there's |there (?:is|are)n't |there(?:'s| is| are) not |i found |we found )?"
        r"(?:no|not any|not enough|enough|any|insufficient)"
        rf" (?:\w+ ){{0,2}}?(?:answers?|information|passages?|documents?|results?|context|details?|mention|match(?:es)?){_FOUND}"
    ),
    rf"(?:there (?:is|was)|there's|i found|i see|i have) nothing (?:\w+ )?(?:in|about|on|regarding) (?:{_SOURCES}|{_THAT})",
    r"(?:there (?:is|was) )?no mention of\b",
    rf"nothing (?:in {_SOURCES}|was found|is known|relevant)\b",
    rf"{_SOURCES} {_NOT} (?:\w+ )?(?:mention|say|state|specify|answer|address|cover|describe|discuss|explain|tell)\b",
    rf"{_SOURCES} {_NOT} (?:\w+ )?(?:contain|include|provide|give|have|hold|offer)(?: you)? (?:{_KNOWLEDGE}|{_THAT}|an? answer)",
    rf"{_SOURCES} (?:contains?|has|have|gives?|provides?|includes?|holds?|offers?) no {_KNOWLEDGE}",
    rf"{_SOURCES} (?:lacks?|(?:is|are) missing|makes? no mention|says? nothing|(?:is|are) silent)\b",
    rf"(?:none of |no(?:ne)? (?:of )?){_SOURCES}(?: that)? (?:mention|match|cover|answer|address|discuss|contain|state|describe)",
    rf"(?:it|this|that) (?:does|did)(?: not|n't) say(?:{_END}| (?:who|what|which|when|where|why|how|if|whether|anything|so)\b)",
    (
        rf"(?:it|that|this|{_ANSWER})(?:{_IS_NOT} |(?:'s| is| was) (?:nowhere |un))(?:\w+ly )?"
        rf"(?:known|mentioned|given|stated|specified|found|clear|covered|in {_SOURCES}|to be found)\b"
        r"(?=\s*(?:$|[.!,]|in |by |from |to me|here|anywhere))"
    ),
    rf"{_ANSWER}(?:{_IS_NOT} |(?:'s| is| was) un)(?:available|provided|there)\b",
    rf"not (?:mentioned|specified|stated|covered|found|known|available)(?: in {_SOURCES}| here)?{_END}",
)
#: The question cannot be answered by anyone.
_QUESTION = (
    r"(?:that|this|it|(?:the|your|that|this) question|the topic)(?:'s| is| falls| lies) (?:outside|beyond|not within|out of)\b",
    r"(?:that|this|it)(?:(?:'s| is) not|(?: is)n't) (?:something|a (?:question|topic)) (?:that )?(?:i|we) (?:can|know)\b",
    r"(?:(?:the|this|that|your) )?(?:question|query|request) (?:cannot|can't|could not) be (?:\w+ )?(?:answered|processed|fulfilled)",
    r"(?:this|that|it|the answer) (?:cannot|can't|could not) be (?:\w+ )?(?:answered|determined from|found in|told from|inferred)\b",
    r"(?:it is|it's) (?:not possible|impossible) to (?:\w+ )?(?:answer|determine|say|tell)\b",
)
_OTHER_LANGUAGES = (
    r"(?:das |es |dies )?(?:ich )?(?:weiß|weiss) (?:ich )?(?:\w+ ){0,2}nicht\b",
    (
        r"(?:das|dies|dazu|die frage|diese frage|hierzu|ich)\b.{0,30}\b(?:kann|konnte)\b.{0,40}\b(?:nicht|nichts|keine)\b.{0,20}"
        r"\b(?:beantworten|sagen|finden|helfen|weiterhelfen)\b"
    ),
    r"(?:dazu|darüber|hierzu) (?:liegen|habe|finde)\b.{0,40}\bkeine\b",
    r"(?:es gibt |ich habe (?:\w+ )?|habe ich (?:\w+ )?)?keine (?:antwort|informationen?|angaben?|auskunft)\b",
    r"habe ich (?:\w+ )?nichts (?:gefunden|dazu)\b",
    r"je ne (?:sais|peux|trouve|dispose|connais) pas\b",
    r"je n'ai (?:pas|aucune?|rien) (?:trouvé|d'information|de réponse|information|réponse|idée)",
    r"(?:yo )?no (?:lo )?sé\b",
    r"(?:yo )?no (?:tengo|dispongo|encuentro|encontré|puedo) .{0,30}(?:informaci|respuesta|responder|contestar|ayudar|datos)",
    r"no hay (?:\w+ )?(?:información|respuesta|datos)\b",
    r"non (?:lo )?so\b",
    r"non (?:ho|posso|trovo) .{0,30}(?:informazion|rispond|aiutar|trovat)",
    r"(?:eu )?não (?:sei|encontrei|tenho informaç|posso (?:ajudar|responder))",
    r"ik (?:weet (?:het|dat) niet|heb (?:daar |hier )?geen (?:informatie|antwoord))\b",
    r".{0,12}(?:知らない|知りません|わかりません|分かりません|見つかりません|お答えできません)$",
    r"我?(?:不知道|不清楚|无法回答|没有找到|找不到|不确定)",
    r".{0,12}(?:모르겠습니다|알 수 없습니다|찾을 수 없습니다)$",
)
#: Text in place of an answer after an error.
_BROKEN = (
    rf"(?:http )?(?:[45]\d\d:? )?(?:internal server error|bad gateway|service unavailable|gateway time-?out|too many requests){_END}",
    rf"(?:http |error:? )?[45]\d\d(?: (?:not found|forbidden|unauthorized)){_END}",
    rf"(?:an? |the )?(?:\w+ ){{0,2}}(?:error|problem) (?:occurred|has occurred|happened)(?:{_END}| while| during| when)",
    r"something went wrong\b",
    (
        r"(?:the |your )?(?:upstream|model|llm|api|backend)(?: (?:request|call|server|service))?(?: has)?"
        r" (?:timed out|failed|is (?:overloaded|unavailable))" + _END
    ),
    rf"(?:the |your )?request (?:has )?timed out{_END}",
    r"traceback \(most recent call last\)",
    rf"(?:rate limit|quota) (?:exceeded|reached){_END}",
)
_UNKNOWN = re.compile(f"^{_FIRST}*" + _any(*_SPEAKER, *_MATERIAL, *_QUESTION, *_OTHER_LANGUAGES, *_BROKEN))
#: Not an answer in any position, if nothing follows it.
_POLITE = re.compile(
    r"(?:hi|hello|hey|sorry|thanks|thank you|my apologies|i apologi[sz]e|apologies|unfortunately|as an ai(?: \w+){0,3}"
    r"|(?:i'm|i am|we're|we are) (?:\w+ )?(?:sorry|afraid))(?: there)?(?: (?:for|about) (?:the|that|this|any|your) \w+)?",
)
#: Not an answer next to a statement that there is none; alone it may be one.
_ADVICE = re.compile(
    r"^(?:please|let me know|feel free|if you|you (?:can|could|may|might|should|will have to)|try|contact|consult|ask|check|refer to|see"
    r"|i(?:'d| would) be (?:happy|glad)|i hope|is there anything)\b",
)
#: Courtesies around an answer.
_COURTESY = re.compile(
    r"^(?:here (?:is|are|'s)\b|(?:that|this)(?:'s| is) an? (?:great|good|excellent|interesting) question|(?:great|good) question"
    r"|(?:based on|according to) (?:the|your|these)[^,]{0,60}$|(?:i am|i'm|i(?:'d| would) be) (?:happy|glad|pleased)\b"
    r"|have a (?:nice|great|good)\b"
    r"|hope (?:this|that) helps|this (?:should|will|may|might) help\b|in (?:summary|conclusion|short)$|to (?:summari[sz]e|conclude|sum up)$"
    r"|sure\b.{0,40}$|of course\b.{0,20}$|certainly\b.{0,20}$)"
)
_NONE_AT_ALL = re.compile(
    _any(
        "n/?a", "none", "null", "nil", "unknown", "idk", "no answer", "no idea", "not sure", "no comment", "not found", "no results?",
        "(?:no|not enough|insufficient|no relevant) (?:information|context|details|data)", "undefined", "nan", "error", "answer not found",
    )
)  # fmt: skip


def is_refusal(text: str) -> bool:
    """True if a text gives no answer: blank, without letters and digits, or only stating ignorance.

    Greetings, apologies, advice on where else to ask and questions in return are not answers either.
    """
    plain = _plain(text)
    if not any(character.isalnum() for character in plain):
        return True
    parts = [part.strip(" .,!。！-–") for part in _PARTS.split(plain)]
    said = [part for part in parts if any(character.isalnum() for character in part) and not _is_polite(part)]
    unknown = [part for part in said if _NONE_AT_ALL.fullmatch(part) or _UNKNOWN.match(part)]
    return not said or (bool(unknown) and all(part in unknown or _ADVICE.match(part) for part in said))


def is_courtesy(text: str) -> bool:
    """True if a sentence only greets, thanks, asks back, or offers or advises further steps."""
    plain = _plain(text).strip(" .,!。！-–")
    return _is_polite(plain) or bool(_ADVICE.match(plain)) or bool(_COURTESY.match(plain))


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _MARKS.sub(" ", text.translate(_QUOTES).replace("\n", "\n. "))).strip().casefold()


def _is_polite(part: str) -> bool:
    return part.endswith(("?", "？")) or bool(_POLITE.fullmatch(part))
