"""Judge whether a value looks like a secret, given what its position allows.

The keyword alone is not enough, or all code would be redacted: a value of letters only is a name (`password = get_password`), and so is one
with brackets or with dots between names. A password needs a digit or a mark, a key also needs a length and a mixture. Where only a value
can stand (`"password": "…"` in JSON, `-p …` on a command line) nearly everything is accepted: `is_written`.
"""

import re

TEMPLATE = re.compile(
    rb"\$\{?\w.*|\{.*|[%\x80][a-z_]*%|%\w?\(?.*\)?[sd]?|:?\*+|0x[0-9a-f]{1,8}|<.*|x{3,}|\.{2,}.*|-+|_+|\[.*|@.*|&.*|#.*|/.*|\\.*|https?:.*|\$\(.*|!.*:.*",
    re.IGNORECASE,
)
_NAME = re.compile(
    rb"[A-Za-z_]\w*+(?:(?:\.|->|::|-|/|:|\+)[A-Za-z_]\w*+)++|[A-Za-z]++[0-9]?+|[A-Za-z]++(?:_[A-Za-z0-9]++)++"
)
# A pinned version of a package that is called token or key: `token==17.3.61.dev8421`, `key==v9.24.29+5e3a1f20`.
_VERSION = re.compile(rb"=?v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}(?:[.+\-][0-9A-Za-z.]{1,16})?")
# `PASS: suite/align-c++.exp`, in the log of a test.
_FILE = re.compile(rb"[A-Za-z_.][\w.\-]{0,64}(?:/[\w+\-]{1,64}){0,8}/[\w+\-]{1,64}\.[a-z]{1,4}")
_PLACEHOLDERS = frozenset(
    (b"true", b"false", b"null", b"none", b"undefined", b"string", b"password", b"secret", b"required", b"optional", b"redacted", b"nil",
     b"str", b"bytes", b"hidden", b"masked", b"changeme", b"example", b"empty", b"unknown", b"n/a")
)  # fmt: skip
_LONG_BASE64 = re.compile(rb"(?=[A-Za-z/+]*[0-9])(?=[0-9A-Z/+]*[a-z])(?=[0-9a-z/+]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_MARKED = re.compile(rb"[#&@!^*]{1,2}[A-Za-z0-9]{4,64}+(?![A-Za-z0-9]*[(\[{:])")
_DIGIT_INSIDE = re.compile(rb"[0-9][A-Za-z]")
_FEWEST_DIGITS = 2
OF_NAMES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:"
_DIGITS = b"0123456789"
_NOT_DIGITS = bytes(b for b in range(256) if b not in _DIGITS)
_SHORTEST_PASSWORD, _SHORTEST_TOKEN = 5, 12
_SHORTEST_UNSPEAKABLE, _SHORTEST_OF_LETTERS = 16, 16
SHORTEST_LOOSE = 8
_SURPRISING = (
    (re.compile(rb"[0-9][A-Za-z]"), 1.0),
    (re.compile(rb"[A-Za-z][0-9]"), 0.5),
    (re.compile(rb"[a-z][A-Z]"), 0.5),
    (re.compile(rb"[A-Z]{2,}[a-z]"), 1.0),
    (re.compile(rb"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{5}"), 1.0),
    (re.compile(rb"[!@#$%^*+~?](?=.)"), 1.5),
)
_SHORTEST_SCRAMBLED = 20
_SCRAMBLED, _TURN = re.compile(rb"(?!(?:[A-Z]?[a-z]{2,}+)++$)[A-Za-z]++"), re.compile(rb"[a-z](?=[A-Z])")
_FEWEST_MARKS = 2
_CODE = re.compile(
    rb"://|->|[=,;]|&&|&[A-Za-z0-9_\-]*=|\*\*|\$\w*[({]|\+\+|[)\]}]$|[)\]}][.,]|\|\||(?<![A-Za-z_])[A-Za-z_]{4,}+[(\[]|[?!] "
)
_PAIRS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_OPENING_MARKS = b"#&@%!^*-"


def is_password(value: bytes, *, quoted: bool) -> bool:
    """Return whether a value looks like a password and not like a name in code."""
    if quoted and _MARKED.match(value):
        value = value.lstrip(_OPENING_MARKS)
    if len(value) < _SHORTEST_PASSWORD or TEMPLATE.fullmatch(value) or is_placeholder(value):
        return False
    has_digit = any(c in _DIGITS for c in value)
    if value.isdigit():
        return quoted
    if quoted and b" " in value and not has_digit:
        return False
    if len(value) >= _SHORTEST_TOKEN and b" " not in value and is_random(value, int(has_digit)):
        return True
    if not quoted and _NAME.fullmatch(value):
        # Names in code have no digit inside a word, or a dot between words; `hunter2` and `s3cr3t-x9y` are not names.
        ends = value[-1] in _DIGITS and b"_" not in value and b"-" not in value
        return b"." not in value and (ends or _DIGIT_INSIDE.search(value) is not None)
    return has_digit or (any(c in b"!@#$%^&*+~?" for c in value) and b" " not in value)


def is_token(value: bytes, *, quoted: bool = False) -> bool:
    """Return whether a value looks like a generated key or token."""
    if quoted and not (is_mixed(value) and value.find(b"{") < 0):
        value = value.lstrip(_OPENING_MARKS)
        if TEMPLATE.fullmatch(value):
            return False
    if value[:1] in b"/+" and _LONG_BASE64.fullmatch(value) and value.count(b"/") <= len(value) // 12:
        return True
    if (
        len(value) < _SHORTEST_TOKEN
        or b" " in value
        or (not quoted and TEMPLATE.fullmatch(value))
        or _VERSION.fullmatch(value)
    ):
        return False
    digits = len(value.translate(None, _NOT_DIGITS))
    if digits == len(value) or len(set(value)) < 8:
        return False
    if digits < _FEWEST_DIGITS and not _LONG_BASE64.fullmatch(value):
        return is_random(value, digits)
    if _NAME.fullmatch(value) and not _LONG_BASE64.fullmatch(value):
        return is_random(value, digits)
    # A random key often changes its kind of character; words, versions and dates joined by marks do not.
    kinds, pairs = value.translate(_KINDS), len(value) - 1
    apart = int.from_bytes(kinds[1:], "big") ^ int.from_bytes(kinds[:-1], "big")
    changes = pairs - apart.to_bytes(pairs, "big").count(0)
    return changes * 5 >= len(value) or (len(value) >= 32 and changes * 8 >= len(value)) or is_random(value, digits)


def surprises(value: bytes) -> float:
    """Return a score of features that are rare in names in code.

    Letters after digits, capitals in a row within a word, clusters of consonants, marks.
    """
    return sum(weight * len(pattern.findall(value)) for pattern, weight in _SURPRISING)


def is_random(value: bytes, digits: int) -> bool:
    """Return whether a value with so many digits looks random."""
    if surprises(value) * 5 >= len(value):
        return digits > 0 or len(value) >= _SHORTEST_OF_LETTERS
    if not digits and len(value) >= _SHORTEST_SCRAMBLED and _SCRAMBLED.fullmatch(value):
        turns, vowels = len(_TURN.findall(value)), len(value) - len(value.translate(None, b"aeiouAEIOU"))
        return turns * 6 >= len(value) and vowels * 3 <= len(value)
    if len(value) < _SHORTEST_UNSPEAKABLE or not digits or not value.isalnum():
        return False
    vowels = len(value) - len(value.translate(None, b"aeiouAEIOU"))  # one in five random letters
    return vowels * 4 <= len(value) - digits


_KINDS = bytes(
    0x39 if b in _DIGITS else 0x61 if bytes([b]).islower() else 0x41 if bytes([b]).isupper() else 0x2E
    for b in range(256)
)


def is_mixed(value: bytes) -> bool:
    """Return whether characters are of all kinds, as in generated passwords.

    Brackets are among them; code has fewer kinds, or pairs of brackets.
    """
    if any(0 <= value.find(opening) < value.rfind(closing) for opening, closing in _PAIRS) or _CODE.search(value):
        return False
    if value.islower() or value.isupper() or not any(c in _DIGITS for c in value):
        return False
    return len({c for c in value if c in b"!@#$%^&*+?~("}) >= _FEWEST_MARKS


# Words of placeholders: `YOUR_API_KEY`, `<my-secret-token>`, `changeme`, and text that forms show next to the field.
_OF_PLACEHOLDERS = frozenset(
    b"""your you my the a an some any new old current this that here there enter insert put paste type choose repeat confirm again with into
    replace change changeme me to be set unset value values string text str bytes example sample dummy placeholder fake default optional
    required none null nil undefined true false yes no redacted removed masked hidden filtered secret protected sensitive encrypted empty
    unknown tbd todo foo bar baz goes env var variable vault param parameter input output field label name key keys id token tokens api
    access auth authorization authentication bearer basic user username login app application client server service db
    database refresh session
    password passwd passphrase passcode pass pwd credential credentials email mail account project org private public shared
    signing encryption webhook cookie header url uri plain hash hashed algorithm object number integer boolean array varchar char passwort
    kennwort contrasena senha wachtwoord haslo heslo salasana losenord adgangskode parola sifre jelszo mot de passe motdepasse ihr dein mein
    incorrect correct invalid valid wrong missing expired forgotten forgot reset show hide strength strong weak ok error failed fail passed
    """.split()
)
_LETTERS_ONLY = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MARKSOF_NAMES = re.compile(rb"[<\[{(*]{0,3}[A-Za-z][A-Za-z _./\-]*[>\])}*]{0,3}")


def is_placeholder(value: bytes) -> bool:
    """Return whether a value is a placeholder: `changeme`, `YOUR_API_KEY`, `n/a`."""
    if value.lower() in _PLACEHOLDERS:
        return True
    if _MARKSOF_NAMES.fullmatch(value) is None:
        return False
    return all(word.lower() in _OF_PLACEHOLDERS for word in _LETTERS_ONLY.findall(value))


_SHORTEST_WRITTEN, _MOST_SPACES = 4, 6
_NUMBERED = re.compile(rb"[A-Za-z]{2}[0-9]{2,}$")  # a common ending of passwords, rare in names: `blue.Kite42`
_DOTTED_NAMES = re.compile(rb"[A-Za-z_]++(?:(?:\.|->|::)[A-Za-z_]\w*+)++")
_PROSE = re.compile(
    rb"[A-Z][a-z]+(?: [A-Za-z]+)++|(?:[^ ]* )*(?:is|are|must|not|your|the|be|of|to|for|and|or|in|with|by|at|on)(?: .*)?",
    re.DOTALL,
)


def is_written(value: bytes) -> bool:
    """Return whether a value may be real where only a value can stand.

    Everything except placeholders, templates and names in code.
    """
    if len(value) < _SHORTEST_WRITTEN or TEMPLATE.fullmatch(value) or is_placeholder(value):
        return False
    if value.find(b" ") >= 0 and (value.count(b" ") > _MOST_SPACES or _PROSE.fullmatch(value)):
        return False
    return _DOTTED_NAMES.fullmatch(value) is None or value.find(b"(") >= 0 or _NUMBERED.search(value) is not None


def is_written_with_digits(value: bytes) -> bool:
    """Return whether a value passes `is_written` and has a digit, which words of prose do not have."""
    return any(c in _DIGITS for c in value) and not value.isdigit() and is_written(value)


def reads_as_prose(value: bytes) -> bool:
    """Return whether a value with digits is a word of prose: `SHA256-hashed`, `OAuth2`, `12h`."""
    return _NAMES_WITH_DIGITS.fullmatch(value) is not None


# Words of prose with digits inside: algorithms, product names, measures, ordinals, dates, times.
_NAMES_WITH_DIGITS = re.compile(
    rb"(?:sha|md|rsa|ripemd|blake|argon|pbkdf|aes|des|base|utf|oauth|http|tls|ssl|ipv|rfc|iso|fips|ed|secp|p|v|x|s|k|h|ec|log|web|win|x86_|python"
    rb"|node|mysql|sqlite|neo|db|int|uint|float|n?varchar|i|u|f|sap|ms|office|gpt|id|step|part|row|line|page|chapter|section|version|test|case|type"
    rb"|level|layer|slot|column|field|arg|param|item|user|key|token|day|week|q|fy)[\-_]?[0-9]{1,4}[a-z]{0,4}(?:[\-_/.][a-z0-9]{1,8})*"
    rb"|[0-9]+[\-.,:/]?[a-z]{1,12}(?:-[a-z0-9]+)*|[0-9.,:/\-+%]+[a-z]{0,3}|[a-z']+|[0-9]+x[0-9]+",
    re.IGNORECASE,
)
# A CSS length: the value of `pw` if it is a width in pixels.
_LENGTH = re.compile(rb"[0-9.]{1,8}(?:px|em|rem|pt|vh|vw|ch|cm|mm|%)", re.IGNORECASE)
_COMPOUND = re.compile(rb"[a-z]++[\-/][0-9a-z\x80]++", re.IGNORECASE)
_SHORTEST_SPOKEN = 6


def is_spoken(value: bytes) -> bool:
    """Return whether a value is unlikely to be a word of prose.

    Letters with digits or marks inside, long enough; not a measure, name or date.
    """
    if len(value) < _SHORTEST_SPOKEN or value.translate(None, _PRINTABLE) or not is_password(value, quoted=False):
        return False
    if not any(c in _DIGITS for c in value) and surprises(value) < 1.5:
        return False
    return not reads_as_prose(value) and _COMPOUND.fullmatch(value) is None


# Words joined by a mark, with a number at the end: `Rhubarb_2024`, `blue.Kite42`. In code, they would be names.
_JOINED = re.compile(
    rb"(?=[a-z_.\-]*[A-Z])(?=[A-Z_.\-]*[a-z])[A-Za-z]{2,}(?:[_.\-][A-Za-z]{2,}){0,3}"
    rb"(?:[_.\-]?[0-9]{2,4}|(?<=[a-z])[0-9])[!?]?"
)


def is_said(value: bytes) -> bool:
    """Return whether `is_spoken` accepts a value, or it is words with a number: `Rhubarb_2024`.

    The words need letters of both cases. For sentences, where the names of code do not stand.
    """
    return is_spoken(value) or (
        len(value) >= SHORTEST_LOOSE and _JOINED.fullmatch(value) is not None and not reads_as_prose(value)
    )


_PASSWORD_MARKS, _FEWEST_MADE_UP = b"!@#$%^&*+~?", 2


def is_made_up(value: bytes) -> bool:
    """Return whether a value has several kinds of characters.

    Names of branches, versions, hosts and tags have not.
    """
    if not is_spoken(value) or sum(c in _DIGITS for c in value) < _FEWEST_MADE_UP:
        return any(c in _PASSWORD_MARKS for c in value) and is_spoken(value) and any(c in _DIGITS for c in value)
    return (not value.islower() and not value.isupper()) or any(c in _PASSWORD_MARKS for c in value)


def is_length(value: bytes) -> bool:
    """Return whether a value is a CSS length: `120px`."""
    return _LENGTH.fullmatch(value) is not None


_SHORTEST_PATH = 2  # number of slashes in it
_SHORTEST_LONE, _FEWEST_LONE_DIGITS = 8, 2
# `token1`, `key_2`, `Token2View`: names in code, and of types.
_NUMBERED_NAME = re.compile(
    rb"(?i:alt|ctrl|control|cmd|shift|meta|option)[+\-].*+"  # keys of a keyboard
    rb"|(?:ed|x|curve)25519\w{0,12}|h26[45][a-z]{0,8}"
    rb"|[A-Za-z_\-]++[0-9]|[A-Z][A-Za-z0-9]{0,12}?(?:[A-Z][a-z]{2,}+){2,}+|(?:[A-Z][a-z]++[0-9]{0,3}+){2,}+"
)


def is_short_key(value: bytes) -> bool:
    """Return whether a value too short for `is_token` looks like a credential.

    For positions where the keyword is unambiguous.
    """
    return (
        is_spoken(value)
        and _NUMBERED_NAME.fullmatch(value) is None
        and _VERSION.fullmatch(value) is None
        and not is_slug(value)
        and value.count(b"/") < _SHORTEST_PATH
        and not is_file(value)
    )


_PARTS = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SPEAKABLE = re.compile(rb"(?i:.*[aeiouy].*)|[A-Z]+")
_AFTER_DIGITS = re.compile(rb"[0-9]+([A-Za-z]{7,})")
# A date, or seconds or milliseconds since 1970 between 2001 and 2033: when a token expires.
_TIME = re.compile(
    rb"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{2}){0,3}|1[0-9]{9}(?:[0-9]{3})?"
)
_FEWEST_KINDS_OF_DIGITS, _FEWEST_UNSPEAKABLE = 4, 2


def is_jumbled(value: bytes) -> bool:
    """Return whether letters of both cases do not form words: `xmWiBrjKIR`, but not `myAwsDbKey`."""
    if len(value) < SHORTEST_LOOSE or not value.isalpha():
        return False
    parts = _PARTS.findall(value)
    unspeakable = sum(_SPEAKABLE.fullmatch(part) is None for part in parts)
    return unspeakable >= _FEWEST_UNSPEAKABLE and len(parts) * 5 >= len(value) * 2


def is_credential(value: bytes) -> bool:
    """Return whether `is_short_key` accepts a value, or it is random letters or digits.

    For positions where no word of a sentence and no count can stand.
    """
    if value.isdigit():
        return (
            len(value) >= SHORTEST_LOOSE
            and len(set(value)) >= _FEWEST_KINDS_OF_DIGITS
            and _TIME.fullmatch(value) is None
        )
    if value.isalpha():
        return is_jumbled(value)
    after = _AFTER_DIGITS.fullmatch(value)
    if after is not None:  # `24hours`, and not `4Fmputywqcc`
        letters = after.group(1)
        vowels = len(letters) - len(letters.translate(None, b"aeiouAEIOU"))
        if vowels * 8 <= len(letters):
            return True
    return is_short_key(value)


def is_lone_token(value: bytes) -> bool:
    """Return whether a value is a token after the keyword `token` alone.

    The word also names words of a text and list elements.
    """
    return (
        len(value) >= _SHORTEST_LONE
        and value.isalnum()
        and len(value.translate(None, _NOT_DIGITS)) >= _FEWEST_LONE_DIGITS
        and _DIGIT_INSIDE.search(value) is not None
        and is_short_key(value)
    )


def is_scrambled(value: bytes) -> bool:
    """Return whether letters of both cases are in an order that names do not have: `qPVStNKia`."""
    return len(value) >= SHORTEST_LOOSE and value.isalpha() and surprises(value) * 5 >= len(value)


_DIGIT_IN_WORD = re.compile(rb"[A-Za-z]{2}[0-9][A-Za-z]{2}")
_SHORTEST_DISGUISED = 8


def is_disguised(value: bytes) -> bool:
    """Return whether a word has a digit in place of a letter: `Stroopw4fel`, but not `base64url`."""
    return (
        len(value) >= _SHORTEST_DISGUISED
        and _DIGIT_IN_WORD.search(value) is not None
        and not value.translate(None, _PRINTABLE)
        and not reads_as_prose(value)
    )


def is_no_word(value: bytes) -> bool:
    """Return whether a value cannot be a word of a sentence."""
    return is_spoken(value) or is_disguised(value)


_PRINTABLE = bytes(range(0x21, 0x7F))


def is_file(value: bytes) -> bool:
    """Return whether a value is a path that ends in a file with an extension."""
    return _FILE.fullmatch(value) is not None


_PART_OF_SLUG = rb"(?:[a-z]{2,}+|[0-9]{1,4}|[a-z]{1,2}[0-9]{1,2})"
_SLUG = re.compile(rb"%b(?:[\-/_.]%b)++" % (_PART_OF_SLUG, _PART_OF_SLUG), re.IGNORECASE)


def is_slug(value: bytes) -> bool:
    """Return whether a value is words and short numbers joined by marks: `release-notes-2026-q1`."""
    return _SLUG.fullmatch(value) is not None


_PHRASE = re.compile(rb"[a-z]{2,12}(?:[ \-][a-z]{2,12}){3,7}")
_STOP_WORDS = frozenset(
    b"the a an is are be was must not your my our of to for and or in with by at on no it this that you we please as has have can".split()
)


def is_phrase(value: bytes) -> bool:
    """Return whether a value is four or more words without a sentence: `correct horse battery staple`."""
    return _PHRASE.fullmatch(value) is not None and not _STOP_WORDS.intersection(value.replace(b"-", b" ").split())


_SHORTEST_ALONE = 24


def is_unmistakable(value: bytes) -> bool:
    """Return whether a value is a long token of letters of both cases and digits.

    Hashes, IDs and names in code are not.
    """
    mixed = value.isalnum() and not value.islower() and not value.isupper() and len(value) >= _SHORTEST_ALONE
    return mixed and is_token(value) and surprises(value) * 4 >= len(value)
