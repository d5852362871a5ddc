"""Match telephone numbers.

Four formats: North American, `+` and a country code, `00`/`011` and a country code, and any national number after a keyword or under a
key that contains one. Bare digits without a keyword are kept: order numbers, timestamps and IDs look exactly like them.
"""

import re

from assay_scrubber.automaton import whole_phrase
from assay_scrubber.context_words import FILLERS, rules_after, words_of
from assay_scrubber.family import Announced, AnnouncedRule, Digits, Family, RunRule, View
from assay_scrubber.lexicon import Announces
from assay_scrubber.taxonomy import Category

_NOT_DIGITS = bytes(b for b in range(256) if b not in b"0123456789")

_TWO_DIGIT_CODES = frozenset(
    code
    for first, last in (
        (20, 20), (27, 27), (30, 34), (36, 36), (39, 41), (43, 49), (51, 58), (60, 66), (81, 82), (84, 84), (86, 86),
        (90, 95), (98, 98),
    )
    for code in range(first, last + 1)
)  # fmt: skip
_THREE_DIGIT_CODES = frozenset(
    code
    for first, last in (
        (211, 213), (216, 216), (218, 218), (220, 269), (290, 291), (297, 299), (350, 359), (370, 383), (385, 387),
        (389, 389), (420, 421), (423, 423), (500, 509), (590, 599), (670, 670), (672, 692), (800, 800), (808, 808),
        (850, 850), (852, 853), (855, 856), (870, 870), (878, 878), (880, 883), (886, 886), (888, 888), (960, 968),
        (970, 977), (979, 979), (992, 996), (998, 998),
    )
    for code in range(first, last + 1)
)  # fmt: skip
# Digits including the country code, where the plan has one length: this gives the number's end if more digits follow.
_FIXED_LENGTHS = {
    1: 11, 7: 11, 27: 11, 30: 12, 31: 11, 33: 11, 34: 11, 41: 11, 44: 12, 45: 10, 47: 10, 48: 11, 51: 11, 52: 12,
    57: 12, 61: 11, 63: 12, 65: 10, 66: 11, 81: 12, 82: 12, 86: 13, 90: 12, 91: 12, 92: 12, 351: 12, 353: 12, 420: 12,
    852: 11, 971: 12, 972: 12,
}  # fmt: skip
# Plans with whole numbers shorter than `_SHORTEST_SOLID` and `_SHORTEST_SEPARATED`: fewest digits including the country code.
_SHORT_PLANS = {
    46: 9, 247: 8, 290: 7, 298: 9, 299: 9, 352: 8, 358: 9, 359: 9, 376: 9, 421: 9, 500: 8, 508: 9, 597: 9, 672: 9, 676: 8, 677: 8,
    678: 8, 681: 9, 682: 8, 683: 7, 685: 8, 686: 8, 687: 9, 688: 8, 690: 7,
}  # fmt: skip
_LONGEST = 15  # ITU-T E.164
_SHORTEST_SEPARATED = 8
_SHORTEST_SOLID = 10


def country_code(digits: bytes) -> int | None:
    """Return the assigned ITU-T country code that `digits` start with."""
    if digits[:1] in (b"1", b"7"):
        return int(digits[:1])
    if int(digits[:2] or b"0") in _TWO_DIGIT_CODES:
        return int(digits[:2])
    return int(digits[:3]) if int(digits[:3] or b"0") in _THREE_DIGIT_CODES else None


_LEFT = rb"(?<![0-9A-Za-z\x80])(?<![0-9][\-./_])"
_RIGHT = rb"(?![0-9]|[\-./_][0-9]|(?!x[0-9]|ext)[A-Za-z\x80])"
_BETWEEN = rb"(?: ?[.\-/] ?| )"
_AMERICAN = re.compile(
    _LEFT + rb"(?:\+?1(?: ?[.\-] ?| )?)?"
    rb"(?:(\([0-9]{3}\)) {0,2}[.\-]?[0-9]{3}(?: ?[.\-] ?| )?[0-9]{4}"
    rb"|([0-9]{3})(%b)([0-9])[0-9]{2}(%b)[0-9]{4})" % (_BETWEEN, _BETWEEN) + _RIGHT
)
_PLUS = re.compile(rb"(?<![0-9A-Za-z\x80+])\+\(?[1-9](?:[ .\-()/]{0,3}[0-9]){6,32}+(?![A-Za-z\x80])")
_ZEROS = re.compile(rb"(?<![0-9A-Za-z\x80])(?<![0-9][\-./_ ])(?:00|011)([ .\-]?)[1-9](?:[ .\-()/]{0,3}[0-9]){6,32}+")
_ANY = re.compile(
    rb"(?<![0-9A-Za-z\x80$])(?<![0-9][ \-/_)])(?<![^A-Za-z]\.)(?<![0-9],)\(?[0-9](?:[ .\-()/]{0,3}[0-9]){6,14}"
    rb"(?![0-9]|(?!x[0-9]|ext)[A-Za-z\x80]|[.,][0-9])"
)
_DECIMAL = re.compile(rb"\+[0-9]{4,}\.[0-9]+")
_GROUPS = re.compile(rb"[0-9]++")
_DATE = re.compile(
    rb"(?:19|20)[0-9]{2}[\-./ ](?:0?[1-9]|1[0-2])[\-./ ](?:[0-2]?[0-9]|3[01])(?![0-9])"
    rb"|(?:[0-2]?[0-9]|3[01])[\-./](?:[0-2]?[0-9]|3[01])[\-./](?:19|20)[0-9]{2}(?![0-9])"
    rb"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9])"
)

# Words before a number and what they indicate; the nearest one decides.
_STRONG = frozenset(
    """
phone phones telephone telephones cellphone smartphone mobilephone phonenumber phonenumbers phoneno phonenr homephone workphone
officephone contactphone userphone customerphone mobilenumber mobileno contactnumber contactno faxnumber faxno cellnumber tel telno
telnr telefax mobile mobiles mob cell cellular fax whatsapp sms msisdn hotline landline helpline dial dialed dialled callback
switchboard voicemail ph
telefono fone fones tel\x80fono telefonos tel\x80fonos m\x80vil movil celular telefone telefones telem\x80vel telemovel
t\x80l\x80phone t\x80l portable
cellulare
telefon telephon telefonnummer telefonnr telefonnumer handy handynummer handynr rufnummer mobil mobilnummer mobilnr mobiltelefon
mobilfunknummer festnetz durchwahl telefoon telefoonnummer telefoonnr mobiel gsm tlf tlfnr mobilnummeret telefonnummeret
puhelin puhelinnumero puhelinnumeroni puh matkapuhelin telefonu telefonem telefonul telefona telefoni telefonn\x80 mobiln\x80 mobitel
mobitela kom\x80rka kom\x80rkowy telefonsz\x80m telefonsz\x80ma telefonsz\x80mom mobilsz\x80m telefonas t\x80lrunis telepon telepono
nohp simu cel celu ph
ponsel bimbit tho\x80i s\x80t sdt
""".encode("latin-1").split()
)
#: Verbs that also have other objects.
_WEAK = frozenset(
    b"call called calling calls ring rang text texted texting reach reached reachable contact message signal bel liga".split()
)
#: Verbs whose object is a telephone number.
_VERBS = frozenset(
    """
ruf rufe rufen anrufen anruf erreichbar erreichen erreichst r\x80ckruf appelez appeler appelle rappelez rappeler joindre joignable
llama llame llamar ll\x80mame ll\x80meme llamen ll\x80menos ll\x80manos marcar marque chiama chiamami chiamare chiamate chiamaci chiamarmi
ligue ligar liguem bellen bereikbaar ringa ringe soita soittakaa soittaa zadzwo\x80 dzwo\x80 zadzwoni\x80 dzwoni\x80 zavolejte volejte
zavolej volajte zavolajte h\x80vjon h\x80vj h\x80vja suna\x80i sunati sun\x80 nazovite pozovite hubungi
""".encode("latin-1").split()
)
#: Words that show a weak verb to mean calling: `reach us on`, `ring mig p\x80`.
_PERSONS = frozenset(b"me us him her them mich uns ihn ihm moi nous mig meg oss mij ons please".split())
_LINKS = frozenset("at on under via unter auf to au al p\x80 op para pod na la sur ao no an".encode("latin-1").split())
_NUMBERS = frozenset("number numbers num numer nummer numero numeroon n\x80mero num\x80ro".encode("latin-1").split())
_FILLERS = (
    FILLERS
    | _NUMBERS
    | frozenset(
        b"""
or by from direct directly work home office please back line support main alt changed change became now be being been today again
secondary contact private business personal urgent emergency day night after hours phone mobile customer client country intl
international toll free ext saya just only still either best right kom cep privat zuhause domicile bureau
""".split()
    )
)
#: Two words that count as one.
_PAIRED = frozenset((b"no hp", b"nomor hp", b"nomer hp", b"cep no", b"cep tel", b"cep numaram", b"cep numaras\x80"))
_NO_CALLS = frozenset((b"tool", b"function", b"api", b"rpc", b"system", b"method", b"each", b"per", b"procedure"))
_WORDS_AFTER = (b"mobile", b"cell", b"office", b"fax", b"tel", b"phone", b"home", b"work", b"m", b"h", b"w", b"o")
#: Owners, for a number given without a keyword; in a signature, one letter is enough.
_OWNERS = frozenset(
    b"contact my his her our your their new home work office direct emergency meine mi mon mijn mio ma moj meu minha nosso nossa"
    b" nuestro notre nostro".split()
)
_SIGNATURE = re.compile(rb"(?:^|[\n|,;] ?|  )[tmpf][:.] {0,2}$")
#: A number with none of these nearby costs one look-up.
_ANNOUNCING = (
    whole_phrase(
        word for word in (b"my no", *_STRONG, *_PAIRED, *_WEAK, *_VERBS, *_WORDS_AFTER, *_NUMBERS) if len(word) > 1
    )
    + rb"|\([mhwo]\)|(?:^|[^a-z0-9])[tmpf][:.]"
)
_MOST_WORDS, _MOST_STRANGERS = 9, 4
# How certain it is that a telephone number follows.
_UNLIKELY, _POSSIBLE, _LIKELY, _CERTAIN = range(4)
_THREE_BY_THREE = re.compile(rb"[5-9][0-9]{2}([ .])[0-9]{3}\1[0-9]{3}")
_LOCAL = re.compile(
    rb"[2-9][0-9]{2}[ \-][0-9]{4}|[2-9][0-9](?: [0-9]{2}){3,4}|(?!19|20)[2-9][0-9]{3}[ \-](?!19|20)[0-9]{2}(?!00)[0-9]{2}"
)
_GROUPED = re.compile(rb"[0-9]{1,6}(?:([ .\-/])[0-9]{2,6})(?:[ .\-/][0-9]{2,6}){0,4}")
_MOST_GROUPED = 12
_YEARS = re.compile(rb"(?:19|20)[0-9]{2}(?:[\-/](?:19|20)[0-9]{2}|(?: (?:19|20)[0-9]{2}){2,5})")
_TWO_YEARS = re.compile(rb"(?:19|20)[0-9]{2} (?:19|20)[0-9]{2}")
# `mi número es 612345678`: the length and prefix of mobile numbers where the language is spoken.
_OWN_NUMBER = re.compile(rb"[3679][0-9]{8}|3[0-9]{9}|0[1-9][0-9]{8}")
_MINE = re.compile(
    rb"(?<![a-z\x80])(?:mi|il mio|mio|mon|o meu|meu|nuestro|notre|nostro) (?:n\x80mero|numero|num\x80ro|num)(?![a-z])[^\n]{0,24}$"
)
_USUAL = (10, 11)  # digits, with the trunk prefix
_AFTER = re.compile(
    rb" ?\((?:%b)\)| (?:is|was) (?:my|our|his|her|their|your|the)(?: [a-z]{2,9}){0,2} (?:mobile|cell|phone|fax|telephone|landline)(?![a-z])"
    % b"|".join(_WORDS_AFTER)
)


def _likely(before: bytes) -> int:
    """Return how clearly the words before a number identify it as a telephone number."""
    line = before.rpartition(b"\n")[2]
    at_start = not line.strip()  # start of a line: a heading may stand above it
    words, strangers, person, linked = words_of(before if at_start else line)[-_MOST_WORDS:], 0, False, False
    otherwise = _LIKELY if _SIGNATURE.search(before) else _UNLIKELY
    for index in range(len(words) - 1, -1, -1):
        word, previous = words[index], words[index - 1] if index else b""
        if word in _STRONG or b"%b %b" % (previous, word) in _PAIRED:
            return _LIKELY if strangers else _CERTAIN
        if word in _WEAK or word in _VERBS:
            return max(otherwise, _of_verb(word, previous, strangers, person or previous in _PERSONS, linked))
        if (word in _NUMBERS or word == b"no") and previous in _OWNERS and not strangers:
            otherwise = _LIKELY
        elif word in _PERSONS:
            person = True
        elif word in _LINKS:
            linked = linked or not strangers
        elif word not in _FILLERS and len(word) > 1:
            strangers += 1
            if strangers > _MOST_STRANGERS or at_start:
                break
    return otherwise


def _of_verb(word: bytes, previous: bytes, strangers: int, person: bool, linked: bool) -> int:
    """Return how clearly a verb's object is a number to call; an object (`reach us`) and a link (`on`) count most."""
    if previous in _NO_CALLS:
        return _UNLIKELY
    if strangers:
        return _POSSIBLE if linked else _UNLIKELY
    if person or (word in _VERBS and linked):
        return _CERTAIN
    return _LIKELY if linked or word in _VERBS else _POSSIBLE


def _american(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    parenthesised, area, first, exchange, second = match.groups()
    if parenthesised or b"+" in match.group() or (b"-" in first and b"-" in second):
        return match.span()
    if area[:1] in (b"0", b"1") or {first, second} == {b".", b"-"}:  # 252.227-7014 is a clause number
        return None
    if first == second == b" " and exchange in b"01":
        # "300 150 4000" in a row of numbers; alone, it is a telephone number written with spaces.
        raw, (start, end) = match.string, match.span()
        if raw[start - 2 : start - 1].isdigit() or raw[end + 1 : end + 2].isdigit():
            return None
    return match.span()


def _end_of_number(match: re.Match[bytes], start: int, digits_before: int, code: int) -> int | None:
    """Return the end, at a group boundary, of the number that starts with `code`; None if it is not a number."""
    fixed, count, best = _FIXED_LENGTHS.get(code), 0, None
    for group in _GROUPS.finditer(match.string, start, match.end()):
        count += group.end() - group.start()
        total = count - digits_before
        if total > _LONGEST:
            break
        best = (group.end(), total)
        if total == fixed:
            break
    if best is None:
        return None
    end, total = best
    solid = _GROUPS.match(match.string, start)
    is_solid = solid is not None and solid.end() == end
    if code == 1 and total != fixed:
        return None
    shortest = _SHORTEST_SOLID if is_solid else _SHORTEST_SEPARATED
    if b"." not in match.string[start:end]:  # +500.12345 is a number
        shortest = min(shortest, _SHORT_PLANS.get(code, shortest))
    return end if total >= shortest else None


def _international(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    code = country_code(match.group().translate(None, _NOT_DIGITS))
    if code is None or _DECIMAL.fullmatch(match.group()):
        return None
    first = _GROUPS.search(match.string, match.start())
    end = _end_of_number(match, first.start(), 0, code) if first else None
    return (match.start(), end) if end is not None else None


_CLOCK = re.compile(rb"[0-9]:$")


def _after_zeros(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if _CLOCK.search(view.raw, max(0, match.start() - 3), match.start()):
        return None  # 15:19:00.817955 is a time of day
    digits = match.group().translate(None, _NOT_DIGITS)
    zeros = 3 if digits.startswith(b"011") else 2
    code = country_code(digits[zeros:])
    if code is not None and digits.startswith(b"00", zeros + len(str(code))):
        return None  # 0020.0002.0065
    group = _GROUPS.match(match.string, match.start())
    if code is None or group is None:
        return None
    written_apart = len(group.group()) in (zeros, zeros + len(str(code)))
    end = _end_of_number(match, match.start(), zeros, code)
    if end is None or not (written_apart or _likely(view.before(match.start())) == _CERTAIN):
        return None
    return match.start(), end


def _announced(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    number = match.group()
    if _DATE.match(number) or _YEARS.fullmatch(number):
        return None
    likely = _likely(view.before(match.start()))
    if likely != _CERTAIN and _TWO_YEARS.fullmatch(number):
        return None
    if likely == _CERTAIN or _AFTER.match(view.low, match.end()):
        return match.span()
    if likely == _UNLIKELY:
        return None
    digits = number.translate(None, _NOT_DIGITS)
    # A trunk prefix, an area in parentheses, or three groups of three: order numbers are never written like this.
    national = digits[:1] == b"0" or number[:1] == b"(" or _THREE_BY_THREE.fullmatch(number) is not None
    if likely == _LIKELY and _OWN_NUMBER.fullmatch(digits) and _MINE.search(view.before(match.start())):
        return match.span()
    if likely == _LIKELY:
        grouped = len(digits) <= _MOST_GROUPED and _GROUPED.fullmatch(number) is not None
        usual = number != digits or len(digits) in _USUAL
        return match.span() if grouped or (national and usual) else None
    american = digits[:1] not in b"01" if len(digits) == 10 else len(digits) == 11 and digits[:1] == b"1"
    return match.span() if american or national or _LOCAL.fullmatch(number) else None


_FEW = (
    rb"((?<![0-9])[0-9]{1,4}(?:[ .\-][0-9]{2,4}){1,2}(?![0-9a-z\x80]|[.,:/\-][0-9]|[ .\-][0-9])"
    rb"|(?<![0-9])[0-9]{5,6}(?![0-9a-z\x80]|[.,:/\-][0-9]| ?[%b]))" % b"%"
)
_FEWEST, _MOST = 5, 6
_DAY = re.compile(rb"(?:0?[1-9]|[12][0-9]|3[01])[.\-](?:0?[1-9]|1[0-2])[.\-][0-9]{2}|(?:19|20)[0-9]{2}[.\- ][0-9]{1,2}")
_OF_NUMBER = re.compile(rb"[^a-z\x80](?:numbers?|no|nr|num|nummer|numero|n\x80mero|num\x80ro|numer)[^a-z\x80]")
_FEW_WORDS = (
    "phone telephone tel telno fax telefax telefono tel\x80fono telefone t\x80l\x80phone t\x80l telefon telefonnummer telefoon "
    "telefoonnummer tlf rufnummer cellphone mobilephone phonenumber mobile cell celular cellulare handy puhelin landline hotline whatsapp"
)


def _few(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept numbers of five and six digits: in groups, or after a keyword that names a number or is unambiguous."""
    number = match.group(1)
    digits = number.translate(None, _NOT_DIGITS)
    if not _FEWEST <= len(digits) <= _MOST or _DAY.fullmatch(number):
        return None
    head = match.string[match.start() : match.start(1)]
    if (
        number == digits
        and not head.startswith((b"tel", b"fax", b"t\x80l", b"tlf", b"rufn"))
        and not _OF_NUMBER.search(head)
    ):
        return None
    return match.span(1)


_MARKED = rb"(\+?\(?[0-9](?:[ .\-()/]{0,3}[0-9]){5,14})(?![0-9])"


def _marked(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return None if _DATE.match(match.group(1)) else match.span(1)


# An owner without a telephone keyword: right before the number, which must be long enough for one.
_OWN = AnnouncedRule(
    re.compile(
        Announces.OWN_NUMBER.word
        + rb"[^A-Za-z0-9\x80\n]{0,8}+"
        + rb"(\+?\(?[0-9](?:[ .\-()/]{0,3}[0-9]){8,13})(?![0-9])"
    ),
    _marked,
    needle=Announces.OWN_NUMBER.byte,
)
# Indonesian `hp` (mobile telephone) is also a manufacturer and a unit.
_INDONESIAN = tuple(
    rules_after("hp wa", rb"((?:0|62|\+62 ?)8[0-9]{2}[ .\-]?[0-9]{3,4}[ .\-]?[0-9]{3,5})(?![0-9])", _marked)
)
_OTHER_SCRIPTS = AnnouncedRule(Announces.PHONE.before(_MARKED), _marked, needle=Announces.PHONE.byte)
# Unambiguous national formats, trunk zero or area in parentheses included: Russia, Japan, Korea, China, Brazil, France,
# British mobiles, Turkey, Pakistan.
_NATIONAL = re.compile(
    rb"(?<![0-9A-Za-z\x80])(?<![0-9][ \-./_])(?:8 ?\([0-9]{3}\) ?[0-9]{3}-[0-9]{2}-[0-9]{2}"
    rb"|0[789]0-[0-9]{4}-[0-9]{4}|01[016789]-[0-9]{3,4}-[0-9]{4}"
    rb"|0[1-9]-[0-9]{4}-[0-9]{4}|1[3-9][0-9]-[0-9]{4}-[0-9]{4}|\([1-9][0-9]\) ?9?[0-9]{4}-[0-9]{4}"
    rb"|\(0[0-9]{1,4}\) ?[0-9]{3,8}(?:[ \-][0-9]{2,4}){0,2}"
    rb"|0[1-9](?: [0-9]{2}){4}|0[1-9](?:\.[0-9]{2}){4}|07[0-9]{3} [0-9]{6}"
    rb"|05[0-9]{2} [0-9]{3} [0-9]{2} [0-9]{2}|03[0-9]{2}-[0-9]{7}|08[0-9]{2}-[0-9]{4}-[0-9]{3,4})"
    rb"(?![0-9A-Za-z\x80]|[ \-./_:][0-9])"
)


def _national(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span()


FAMILY = Family(
    name="phone",
    category=Category.CONTACT,
    rank=80,
    gate=Digits(7),
    rules=(
        RunRule(_AMERICAN, _american, fewest=10, shape=rb"(?<!9)9?-{0,4}9{3}-{0,5}9{3}-{0,3}9{4}(?!9)"),
        RunRule(_PLUS, _international, sign=b"+"),
        RunRule(_ZEROS, _after_zeros, fewest=10, fallback=True),
        RunRule(_NATIONAL, _national, fewest=9, most=12, shape=rb"9-9", fallback=True),
        RunRule(_ANY, _announced, near=_ANNOUNCING, fallback=True),
    ),
    more=((Announced(), (*rules_after(_FEW_WORDS, _FEW, _few), *_INDONESIAN, _OTHER_SCRIPTS, _OWN)),),
    description="Telephone numbers: North American, international, and national ones after a keyword or under its key.",
    examples=(
        "555-123-4567",
        "(555) 123-4567",
        "+15551234567",
        "+44 20 7946 0958",
        "0044 20 7946 0958",
        "phone 020 7946 0958",
    ),
    counterexamples=(
        "5551234567",
        "order 123-456-7890123",
        "1714558953",
        "978-3-16-148410-0",
        "E0718 15:19:00.817955   97042 row.go:361]",
    ),
)
