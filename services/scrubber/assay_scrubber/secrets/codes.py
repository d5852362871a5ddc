"""Match one-time codes and codes of cards: `Your verification code is …`, `OTP: …`, `CVV …`."""

import re

from assay_scrubber.family import LiteralRule, View
from assay_scrubber.lexicon import Announces

_CODE = (
    rb"(?P<code>(?:[A-Za-z]{1,2}-)?[0-9]{3}[ \-][0-9]{3}(?![0-9\-])|(?:[A-Za-z]{1,2}-)?[0-9]{4,8}(?![0-9])"
    rb"|(?=[A-Za-z0-9]{0,7}[0-9])(?=[A-Za-z0-9]{0,7}[A-Za-z])[A-Za-z0-9]{6,8}(?![A-Za-z0-9]))(?![\w%]|[.,:/\-][0-9])"
)
_QUOTES = rb"[\"'`*_<>(\[ \t\x81]{0,6}"
_BE = (
    rb"(?:(?: [a-z\x80'\-]{1,12}){1,4}? (?:is|ist|lautet|est|es|\x80|er|\x80r|on|jest|l\x80|var|este):?)?"
    rb"(?:[ \t]{0,2}(?:is|ist|lautet|est|est le|es|\x80|e'|:|=|was|er|\x80r|jest|to|on|code|kod|number|no|\x80:|is:|are|\x81|=>|-|\x80\x80"
    rb"|\(otp\)|\?|\"\s?:)){0,4}"
)
#: Kinds of code, before the word for it or in one with it.
_KIND = (
    rb"(?:verification|verify|security|access|login|log-?in|sign-?in|authentication|authenticator|authorization|auth|confirmation"
    rb"|one[ \-]?time|2fa|mfa|two-factor|otp|sms"
    rb"|secret|secreto|segreto|pass|door|gate|alarm|garage|keypad|intercom|lockbox|unlock|pairing|activation|backup|recovery|validation|card|reset|v\x80rification|verificaci\x80n|verificacion|verifica(?:\x80\x80o|cao)?|confirmaci\x80n|confirma\x80\x80o"
    rb"|confirmation|connexion|s\x80curit\x80|seguridad|seguran\x80a|acceso|acesso|sicurezza|conferma|accesso|weryfikacyjny|verificatie"
    rb"|bekr\x80ftelse|do\x80rulama|onay|x\x80c minh|x\x80c th\x80c)"
)
_WORDS = rb"(?:code|c\x80digo|codigo|codice|kod(?:u|unuz|um|un|en)?|kode|koden|koodi|k\x80d|m\x80)"
_BEFORE = re.compile(_KIND + rb"[ \-_]?$")
_COMPOUND = re.compile(
    rb"(?:best\x80tigungs|sicherheits|verifizierungs|zugangs|freischalt|einmal|anmelde|verificatie|bevestigings|bekr\x80ftelse|verifierings|engangs"
    rb"|vahvistus|toegangs|otp[ _\-]?|2fa[ _\-]?|mfa[ _\-]?|pass)$"
)
_ANNOUNCED = re.compile(
    _WORDS
    + rb"(?P<kind> (?:(?:de|di|do|da|d'|of|\x80|la|le|for|the|your) ?){0,2}"
    + _KIND
    + rb")?(?P<sent> (?:that )?(?:we|i|they)(?:'ve| have| just)? (?:sent|texted|e-?mailed|messaged)(?: (?:to )?(?:you|your [a-z]{3,8}))?"
    rb"| (?:that )?(?:i|you|we)(?:'ve)?(?: just)? (?:got|have|received|see|texted|sent))?"
    + rb"(?: (?:for|f\x80r|pour|para|per) [^\n:]{1,40}?)?"
    + _BE
    + _QUOTES
    + _CODE
)
_ALONE = re.compile(
    rb"(?<![a-z0-9\x80])(?:otp|totp|2fa|mfa|passcode|mobiletan|tan|one[ \-]time (?:pass(?:word|code)|pin|code))(?:[ _\-]?(?:code"
    rb"|kod|pin|nummer|token))?(?![a-z0-9])(?P<purpose> (?:for|to) [^\n:]{1,60}?(?= is [0-9]))?" + _BE + _QUOTES + _CODE
)
_AFTER = re.compile(
    rb"(?: is (?:your|the) [^\n.]{0,40}?(?:code|otp|passcode|pin)\b"
    rb"|(?:[,.]| -|\r?\n)? ?that(?:'s| is) (?:the|my|your) (?:[a-z\-]{2,14} )?(?:code|otp|passcode)\b"
    rb"| (?:ist|est|es|\x80) (?:ihr|dein|votre|ton|tu|su|il tuo"
    rb"|seu) [^\n.]{0,40}?(?:code|c\x80digo|codigo|codice)"
    rb"| to (?:log|sign) ?in\b| to (?:verify|confirm) your\b| (?:as|for) your [^\n.]{0,24}?code\b| as (?:the|my) %b[ \-]?code\b)"
    % _KIND
)
_NUMBER = re.compile(rb"(?<![\w.\-#$])((?:[a-z]{1,2}-)?[0-9]{3}[ \-]?[0-9]{1,5})[\"'*]{0,2}(?![0-9])")
_ENTERED = re.compile(
    rb"(?: to (?:log|sign|verify|confirm|complete|continue|finish|reset|access|authenticate)"
    rb"| (?:on|in|into|at) (?:the|your)(?: [a-z]{2,12})? (?:device|app|phone|tv|screen|website|site|page|browser|prompt|form)\b"
    rb"| (?:expires|is valid|valid for|will expire)\b"
    rb"|\. (?:it )?(?:expires|do not share|don't share|never share|valid))"
)
_OTHER_CODES = re.compile(
    rb"(?:error|status|exit|zip|postal|post|area|country|response|http|return|product|promo|coupon|discount|source|voucher"
    rb"|currency|dress) code"
)
# Other things that one may enter a number into.
_VAGUE, _SHORTEST_VAGUE = re.compile(rb" to (?:complete|continue|finish|reset|access)"), 6
_USED = re.compile(rb"(?:use|enter|type|(code|otp|pin))(?: the)?( code)?[ :]{1,3}[\"'*]{0,2}$")
_PIN = re.compile(
    rb"(?:(?<![\w\-./$])p[iu][nk](?:[ \-]?(?:code|number|nummer|nr\.?))?"
    rb"(?: for(?: [a-z\x80'\-]{2,12}){1,7}?|(?: [a-z\x80'\-]{2,12}){0,4}?)(?P<link>(?:[ \t]{0,2}(?:is"
    rb"|ist|lautet|est|es|\x80|was|:|=|=>|\"\s?:)){1,2}))"
    + _QUOTES
    + rb"(?P<code>[0-9]{4}(?: [0-9]{4})?|[0-9]{3} [0-9]{3}|[0-9]{5,8})(?![\w%/:\-]|\.[0-9])"
)
_MY_PIN = re.compile(rb" pin[12]?(?:[ \-]code)? (?P<code>[0-9]{4,8})(?![\w.%/:\-])")
_MINE = re.compile(
    rb"(?<![a-z])(?:my|your|his|her|card|the|sim|mein|meine|mon|mi|minha|il mio|mijn)(?:'s)?(?: (?:bank|card|atm|debit|credit|sim|visa))?$"
)
_CVV = re.compile(
    rb"(?:(?:cvv2?|cvc2?|cvn|card (?:security|verification) (?:code|value|number)|security code|kartenpr\x80fnummer|pr\x80fziffer"
    rb"|cryptogramme)(?:[ _\-]?(?:code|number|nr))?)[\"'\])]{0,2}"
    + _BE
    + _QUOTES
    + rb"(?P<code>[0-9]{3,4})(?![\w.%/\-]|:[0-9])"
)
# The same code in other words: `the three digits on the back are …`, and after a card: `CID …`.
_ON_THE_BACK = re.compile(
    rb"(?:(?P<digits>(?:three|four|3|4)(?:[ \-]| last )(?:digits?|numbers?)(?: code)?)|code|number) on (?:the|its) (?:back|reverse)"
    rb"(?: of (?:the|my|your|it)(?: [a-z]{2,12})?)?(?:[,:]| (?:is|are|was|reads|says):?){0,2} (?P<code>[0-9]{3,4})(?![\w%/\-]|[.,:][0-9])"
)
_CID = re.compile(rb"(?:cid|csc|ccv|cv2)(?: is|:|=| code| number){0,2} ?(?P<code>[0-9]{3,4})(?![\w%/\-]|[.,:][0-9])")
_CARD = re.compile(rb"card|visa|amex|american express|discover|maestro|expir|(?<![a-z])exp(?![a-z])")
_CARD_NEAR = 80
_LIST = re.compile(
    rb"(?:recovery|backup|rescue|emergency|scratch)[ _\-]codes?[\"']?(?: is| are| was| were|'s)?[ :=\[\n]{1,6}"
    rb"(?P<code>[\"']?[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}){1,3}"
    rb"(?:(?:[\"', \n]{1,6}| and )[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}){1,3}){0,16}+)"
)
_SEED = re.compile(
    rb"(?:2fa|totp|mfa|otp|authenticator)[ _\-]?(?:seed|secret|key|setup key)[\"']?[ :=]{1,4}[\"']?(?P<code>[a-z2-7]{16,64}"
    rb"|[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})(?![a-z0-9])"
)
_OTHER_SCRIPT = re.compile(
    Announces.CODE.word
    + rb"[^A-Za-z0-9\n]{0,32}+(?P<code>(?:[A-Z]{1,2}-)?[0-9]{3}[ \-]?[0-9]{1,5}|[0-9]{2}(?:[ \-][0-9]{2}){2})(?![0-9A-Za-z.])"
)


#: The owner of a code of unspecified kind, and words that introduce it.
_YOURS = re.compile(
    rb"(?:^|[^a-z\x80])(?:your|ihr|dein|euer|votre|ton|tu|su|seu|teu|tuo|suo|vostro|jouw|je|uw|din|twoj|tw\x80j|vas|v\x80"
    rb"|(?:sent|texted|e-?mailed|messaged) (?:you )?(?:a|the|this))[ ]$"
)
_OF_A_MAKER = re.compile(rb"[Yy]our [A-Z][a-z][A-Za-z]{1,14} $")
_SAYS = re.compile(_WORDS + rb"(?: (?:is|ist|lautet|est|es|\x80|e'|jest|\x80r|er|to)[ :]|[ ]?[:=])")
# A number that arrived on a phone: `they texted me 157830, is that the code?`
_RECEIVED = re.compile(
    rb"(?:(?:texted|sent|messaged|e-?mailed) me|(?:sms|text|message|e-?mail) (?:says|said|reads|shows)|i (?:got|received|entered|typed))"
    rb"(?: the (?:number|digits|code))?:? [\"']?(?P<code>[0-9]{6}|[0-9]{3}[ \-][0-9]{3}|[0-9]{4,8})[\"']?(?![\w%]|[.,:/\-][0-9])"
)
_OF_CODES = re.compile(rb"(?<![a-z])(?:code|passcode|otp|verif[a-z]+|2fa)(?![a-z])")
_NEAR_CODE = 80
# Eight digits that unlock a SIM, and the PIN of a card that has just been named.
_PUK = re.compile(
    rb"(?<![a-z0-9])puk(?:[ \-]?(?:code|nummer|nr\.?|1|2))?[ :=]{1,3}(?P<code>[0-9]{8}|[0-9]{4} [0-9]{4})(?![\w%]|[./:\-][0-9])"
)
_OF_A_CARD = re.compile(
    rb"(?:card|karte|carte|tarjeta|account|konto|atm|bank|sim|visa|master)[^\n]{0,80}(?:and|und|et|y|,)$"
)


def _code(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span("code")


def _of_card(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match near a word for a card, except for `the three digits on the back`."""
    if match.re is _ON_THE_BACK and match["digits"]:
        return match.span("code")
    near = view.low[max(0, match.start() - _CARD_NEAR) : match.end()]
    return match.span("code") if _CARD.search(near) else None


def _listed(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Reject words joined by hyphens: `the recovery code is hand-written`."""
    return None if _JOINED_WORDS.match(match["code"]) else match.span("code")


_JOINED_WORDS = re.compile(rb"[\"']?[a-z]++(?:-[a-z]++)++(?![a-z0-9\-])")


# Pins of a chip, and counts: `GPIO pin = 1234`, `pin: 1024 connections`.
_OF_A_CHIP = re.compile(
    rb"(?:gpio|pcb|chip|board|header|connector|arduino|esp32|data|clock|reset|interrupt|analog|digital|output|input|led|adc|pwm)[ _\-]?$"
)
_COUNTED = re.compile(
    rb" ?(?!(?:for|and|to|on|at|in|is|or|if|please|then|und|f\x80r|pour|para|per|as|but|by|from|with)\b)[a-z]{1,16}\b"
)


def _pin(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if _OF_A_CHIP.search(view.low, max(0, match.start() - 16), match.start()):
        return None
    return None if _COUNTED.match(view.low, match.end("code")) else match.span("code")


def _before(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match `123456 is your login code`: the code stands right before the words."""
    numbers = [
        number
        for number in _NUMBER.finditer(view.low, max(0, match.start() - 14), match.start())
        if number.end() == match.start()
    ]
    if not numbers:
        return None
    start, end = numbers[-1].span(1)
    if match.re is _AFTER:
        return None if _OTHER_CODES.search(match.group(0)) else (start, end)
    used = _USED.search(view.low, max(0, start - 24), start)
    if used is None:
        return None
    vague = _VAGUE.match(match.group(0)) is not None and not any(used.groups())
    return None if vague and end - start < _SHORTEST_VAGUE else (start, end)


def _mine(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    at = match.start()
    mine = _MINE.search(view.low, max(0, at - 24), at) or _OF_A_CARD.search(view.low, max(0, at - 96), at)
    return match.span("code") if mine else None


def _year(code: bytes) -> bool:
    return len(code) == 4 and code[:2] in (b"19", b"20")


def _word(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match a code by the word before, in or after the word for it; `error code 504813` is not one."""
    at = match.start()
    if match["kind"] is None and match["sent"] is None and _is_yours(view, at):
        # `Your code is 482913`, but not `your code is 1200 lines long`
        link = match.group()[: match.start("code") - at]
        said = _SAYS.match(link) is not None and not _year(match["code"])
        if said and match["code"].isdigit() and not _COUNTED.match(view.low, match.end("code")):
            return _announced(view, match)
        return None
    if match["sent"] and (
        _OTHER_CODES.search(view.low, max(0, at - 10), at + 4) or _COUNTED.match(view.low, match.end("code"))
    ):
        return None  # `the error code I got is …`, `the code we have is 1200 lines long`
    if (
        match["kind"] is None
        and match["sent"] is None
        and not (_BEFORE.search(view.low, max(0, at - 24), at) or _COMPOUND.search(view.low, max(0, at - 18), at))
    ):
        return None
    return _announced(view, match)


def _received(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match a number that was received, if a code is mentioned nearby and the number counts nothing."""
    around = slice(max(0, match.start() - _NEAR_CODE), match.end() + _NEAR_CODE)
    near = view.low[around]
    if _OF_CODES.search(near) is None or _OTHER_CODES.search(near) or _year(match["code"]):
        return None
    return None if _COUNTED.match(view.low, match.end("code")) else match.span("code")


def _is_yours(view: View, at: int) -> bool:
    """Match `your code` and `your Uber code`, but not `your zip code`."""
    if _YOURS.search(view.low, max(0, at - 24), at):
        return True
    return _OF_A_MAKER.search(view.raw, max(0, at - 24), at) is not None and not _OTHER_CODES.match(
        view.low, view.low.rfind(b" ", 0, at - 1) + 1
    )


def _announced(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Reject a year (`the security code 2024`), unless a word identifies it as the code."""
    code, start = match["code"], match.start("code")
    if match.group(0).startswith(b"tan") and view.raw[match.start() : match.start() + 3] != b"TAN":
        return None  # a tangent
    if (
        _year(code)
        and view.raw[start - 1 : start] == b" "
        and b" is " not in match.group(0)
        and b":" not in match.group(0)
    ):
        return None
    if match.re is _ALONE and match["purpose"] and _COUNTED.match(view.low, match.end("code")):
        return None
    if len(code) == 3 and code == b"000":
        return None
    return match.span("code")


_ALONES = (b"otp", b"2fa", b"mfa", b"passcode", b"tan", b"mobiletan", b"one-time", b"one time", b"totp")
RULES = (
    *(
        LiteralRule(_ANNOUNCED, _word, lower=True, anchored=True, fewest=4, needle=word)
        for word in (b"code", b"c\x80digo", b"codigo", b"codice", b"kod", b"koodi", b"k\x80d ", b"m\x80 ")
    ),
    *(
        LiteralRule(
            _ALONE,
            _announced,
            lower=True,
            anchored=True,
            fewest=4,
            needle=word,
            opens=rb"(?:^|[^a-z])" + word + rb"[^a-z]",
        )
        for word in _ALONES
    ),
    LiteralRule(
        _AFTER,
        _before,
        lower=True,
        fewest=4,
        opens=rb"[0-9][\"'*]* (?:is (?:your|the)|ist|est|es|\x80|to (?:log|sign|verify|confirm)|(?:as|for) your|as (?:the|my)) "
        rb"|[0-9][,.]?(?: -)?\s+that(?:'s| is) (?:the|my|your) ",
    ),
    LiteralRule(
        _ENTERED,
        _before,
        lower=True,
        fewest=4,
        opens=rb"[0-9][\"'*]*(?: to (?:log|sign|verif|confirm|compl|conti|finish|reset|access|auth)| (?:on|in|into|at) (?:the|your)"
        rb"| (?:expires|is valid|valid for"
        rb"|will expire)|\. (?:it |valid|expires|do not|don't|never))",
    ),
    *(
        LiteralRule(_RECEIVED, _received, lower=True, anchored=True, fewest=4, needle=word, opens=word + opens)
        for words, opens in (
            ((b"texted", b"sent", b"messaged", b"emailed", b"e-mailed"), rb" me[ :]"),
            ((b"sms", b"text", b"message", b"email", b"e-mail"), rb" (?:says|said|reads|shows)[ :]"),
            ((b"i ",), rb"(?:got|received|entered|typed) [\"'0-9t]"),
        )
        for word in words
    ),
    LiteralRule(_PUK, _code, lower=True, anchored=True, fewest=8, needle=b"puk"),
    LiteralRule(
        _PIN,
        _pin,
        lower=True,
        anchored=True,
        fewest=4,
        needle=b"puk",
        opens=rb"(?:^|[^a-z])puk[^a-z]",
    ),
    LiteralRule(
        _PIN,
        _pin,
        lower=True,
        anchored=True,
        fewest=4,
        needle=b"pin",
        opens=rb"(?:^|[^a-z])pin[^a-z]",
    ),
    *(
        LiteralRule(_LIST, _listed, lower=True, anchored=True, fewest=2, needle=word)
        for word in (b"recovery code", b"backup code", b"rescue code", b"emergency code", b"scratch code")
    ),
    *(
        LiteralRule(
            _SEED,
            _code,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            opens=word + rb"[ _\-]?(?:seed|secret|key|setup)",
        )
        for word in (b"2fa", b"totp", b"mfa", b"otp", b"authenticator")
    ),
    LiteralRule(
        _MY_PIN, _mine, lower=True, anchored=True, fewest=4, needle=b" pin", opens=rb" pin[12]?(?:[ \-]code)? [0-9]"
    ),
    *(
        LiteralRule(_CVV, _announced, lower=True, anchored=True, fewest=3, needle=word)
        for word in (
            b"cvv",
            b"cvc",
            b"cvn",
            b"card security",
            b"card verification",
            b"security code",
            b"cryptogramme",
            b"kartenpr",
            b"pr\x80fziffer",
        )
    ),
    *(
        LiteralRule(_ON_THE_BACK, _of_card, lower=True, fewest=3, opens=word + rb" on (?:the|its) (?:back|reverse)")
        for word in (rb"digits?", rb"code", rb"numbers?")
    ),
    *(
        LiteralRule(
            _CID,
            _of_card,
            lower=True,
            anchored=True,
            fewest=3,
            needle=word,
            opens=rb"(?:^|[^a-z0-9])" + word + rb"(?: is|:|=| code| number)* ?[0-9]",
        )
        for word in (b"cid", b"csc", b"ccv", b"cv2")
    ),
    LiteralRule(_OTHER_SCRIPT, _code, anchored=True, fewest=3, needle=Announces.CODE.byte),
)
