"""Classify the columns of a database answer by sensitivity and category of personal data. Pure.

Both the column's name and the format of its values count: a name can be uninformative, and some values have no distinctive format.
Meant for results of database tools (`tool_call`), to report what a call touched before any of it is shown or stored. It errs on the
side of more sensitivity: a column about which nothing is known is `confidential`, not `public`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .engine import Scrubber
from .family import Digits
from .json_scrub import hint_of, text_of
from .registry import FAMILIES
from .taxonomy import Category

#: Number of values of a column that are sampled.
SAMPLE = 200
#: Families that are recognised by a check digit also match by chance, so they count only from this share of a column's values.
CHANCE_SHARE = 0.2
#: A text column whose values are longer than this on average is treated as free text, which can contain anything.
PROSE_CHARS = 40


class Sensitivity(IntEnum):
    """Levels of sensitivity, in rising order."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    PII = 3


@dataclass(frozen=True, slots=True)
class Classification:
    """The sensitivity of a column, and its categories.

    Personal data has at least one category, other data has none; ValueError otherwise.
    """

    sensitivity: Sensitivity
    categories: frozenset[Category] = frozenset()

    def __post_init__(self) -> None:
        if (self.sensitivity is Sensitivity.PII) != bool(self.categories):
            raise ValueError("Sensitivity.PII needs at least one category; other sensitivities have none")


PUBLIC = Classification(Sensitivity.PUBLIC)


def combine(found: Iterable[Classification]) -> Classification:
    """Combine several columns: the highest sensitivity and all categories. Without columns: public."""
    rows = list(found)
    categories = frozenset[Category]().union(*(row.categories for row in rows))
    return Classification(max((row.sensitivity for row in rows), default=Sensitivity.PUBLIC), categories)


def classify_rows(rows: Sequence[Mapping[str, Any]], *, table: str = "") -> dict[str, Classification]:
    """Classify every column that any of `rows` has, such as `result["rows"]` of a database tool.

    Call `combine` on the values for the answer as a whole.
    """
    columns: dict[str, list[Any]] = {}
    for row in rows[:SAMPLE]:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    for row in rows[SAMPLE:]:
        for name in row.keys() - columns.keys():
            columns[name] = [row[name]]
    return {name: classify_column(name, values, table=table) for name, values in columns.items()}


def classify_column(name: str, values: Iterable[Any] = (), *, table: str = "") -> Classification:
    """Classify one column.

    `values`: a sample, any JSON values. `table`: the table's name, which shows what a column called `name` names.
    """
    sample = [value for _, value in zip(range(SAMPLE), values, strict=False) if value is not None]
    words = _words(name)
    categories = _by_name(words, _words(table), sample) | _by_shape(name, sample)
    if categories:
        return Classification(Sensitivity.PII, categories)
    return Classification(_without_categories(words, sample))


def _words(name: str) -> list[str]:
    """Split a name into words: `customerEmail2_addresses` -> customer, email, address."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [_singular(part.lower()) for part in parts]


def _singular(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is", "gps", "ios")):
        return word
    return word[:-1]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Sequences of words that stand for a category: the column's name must contain the words in this order, next to each other.
_NAMES: Mapping[Category, str] = {
    Category.CONTACT:
    "email, mail address, e mail, phone, telephone, mobile, msisdn, fax, whatsapp, postal, street, address, zip, "
    "zipcode, zip code, postcode, post code, city, first name, last name, full name, given name, family name, "
    "middle name, maiden name, surname, forename, firstname, lastname, fullname, nickname, user name, username, "
    "customer name, contact name, employee name, patient name, owner name, author name, guest name, recipient name, "
    "sender name, holder name, contact",
    Category.FINANCIAL:
    "salary, wage, payroll, income, net worth, credit score, credit limit, bank balance, account balance, balance, "
    "debt, loan, mortgage, bonus, compensation, tax amount, revenue",
    Category.PAYMENT_CARD:
    "card number, card no, credit card, debit card, creditcard, cardnumber, cc number, cvv, cvc, card expiry, card "
    "holder, iban, account number, account no, acct no, routing number, sort code, swift, bic, pan",
    Category.HEALTH:
    "diagnosis, diagnose, medication, prescription, mrn, medical, patient, encounter id, allergy, symptom, disease, "
    "icd, blood type, blood pressure, insurance id, insurance number, pregnant, disability, vaccination, treatment, "
    "lab result, bmi",
    Category.GENETIC:
    "genome, genotype, genetic, rsid, dna, snp, allele, haplotype",
    Category.BIOMETRIC:
    "biometric, face embedding, face id, facial, voiceprint, voice print, iris, retina, palm print, finger print, "
    "gait",
    Category.BEHAVIORAL:
    "clickstream, click path, purchase history, browse history, browsing history, search history, order history, "
    "watch history, page view, viewed product, event log",
    Category.ONLINE_IDENTIFIER:
    "ip, ip address, ip addr, ipv, cookie, device id, session id, ad id, advertising id, idfa, gaid, imei, mac "
    "address, user agent, wallet address, wallet, client ip, remote addr, visitor id",
    Category.CREDENTIAL:
    "password, passwd, pwd, passphrase, secret, token, api key, apikey, private key, ssh key, access key, pin, otp, "
    "totp, seed phrase, mnemonic, recovery code, backup code, credential, auth key, encryption key, connection "
    "string, dsn",
    Category.GOVERNMENT_ID:
    "ssn, social security, tax id, tin, ein, itin, passport, passport number, licence number, license number, "
    "driver licence, driver license, npi, national id, dni, nif, nie, codice fiscale, curp, rfc, nric, bsn, pesel, "
    "cpf, national insurance, nino",
    Category.LOCATION:
    "lat, latitude, lon, lng, longitude, gps, geo, location, coordinate, geohash, place of birth",
    Category.DEMOGRAPHIC_PROTECTED:
    "birth date, date of birth, dob, birthdate, birthday, birth year, born on, age, gender, sex, race, ethnicity, "
    "religion, orientation, political, politics, union member, marital status, nationality, citizenship",
}  # fmt: skip
_ROWS = tuple((tuple(row.split()), category) for category, names in _NAMES.items() for row in names.split(", "))
# Long enough to be unambiguous inside a word that was written without boundaries: `useremail`.
_WITHIN = re.compile("email|phone|password|passport|birthdate|firstname|lastname|creditcard|passwd|telephone")
_WITHIN_CATEGORY = {
    "password": Category.CREDENTIAL, "passwd": Category.CREDENTIAL, "passport": Category.GOVERNMENT_ID,
    "birthdate": Category.DEMOGRAPHIC_PROTECTED, "creditcard": Category.PAYMENT_CARD,
}  # fmt: skip
# Columns that describe a value rather than contain it: `token_count`, `is_phone_verified`, `password_changed_at`.
_ABOUT_FIRST = _set("is has can was did should num nr n max min avg mean sum total count enable disable")
_ABOUT_LAST = _set(
    "count total max min avg mean length len size limit type kind status enabled verified confirmed valid "
    "required flag at version format used ttl expired updated changed sent template policy label usage budget "
    "price cost rate"
)
# Short words that also have other meanings: they count only as the whole name, or if the values have the format.
_AMBIGUOUS = {
    ("pin",): re.compile(r"\d{4,8}"), ("pan",): re.compile(r"[\d -]{13,23}|[A-Z]{5}\d{4}[A-Z]"),
    ("bic",): re.compile(r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?"), ("tin",): re.compile(r"[\d-]{9,12}"),
    ("ip",): re.compile(r"[\d.]{7,15}|[0-9a-fA-F:]{3,39}"), ("age",): re.compile(r"\d{1,3}"), ("geo",): None,
    ("rfc",): re.compile(r"[A-ZÑ&]{3,4}\d{6}\w{3}"),
    ("sex",): None, ("race",): None, ("token",): None, ("contact",): None, ("location",): None,
}  # fmt: skip
# An integer `address_id` is a table's key. In these categories even a key is revealing, or is the value itself.
_KEY_CATEGORIES = frozenset(
    {
        Category.CREDENTIAL, Category.ONLINE_IDENTIFIER, Category.GOVERNMENT_ID, Category.HEALTH, Category.DEMOGRAPHIC_PROTECTED,
        Category.BEHAVIORAL, Category.LOCATION,
    }
)  # fmt: skip
_PEOPLE = _set(
    "user customer client person people patient employee member contact author owner student guest lead staff "
    "subscriber applicant"
)
_PROSE = _set(
    "comment note description message body content text memo remark feedback transcript summary payload raw data"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _by_name(words: list[str], table: list[str], sample: list[Any]) -> frozenset[Category]:
    found: set[Category] = set()
    about = len(words) > 1 and (words[0] in _ABOUT_FIRST or words[-1] in _ABOUT_LAST)
    kept_by_flags = {Category.HEALTH, Category.DEMOGRAPHIC_PROTECTED}
    for row, category in _ROWS:
        if _side_by_side(row, words) and (not about or category in kept_by_flags) and _means_it(row, words, sample):
            found.add(category)
    if not about and (within := _WITHIN.search("".join(words))):
        found.add(_WITHIN_CATEGORY.get(within[0], Category.CONTACT))
    if words[-1:] == ["name"] and not found and _of_a_person(words[:-1] or table):
        found.add(Category.CONTACT)
    if found and all(isinstance(value, bool) for value in sample) and sample:
        found &= kept_by_flags
    is_key = len(words) > 1 and words[-1] == "id" and bool(sample) and all(type(value) is int for value in sample)
    return frozenset(found & _KEY_CATEGORIES if is_key else found)


def _side_by_side(row: tuple[str, ...], words: list[str]) -> bool:
    size = len(row)
    return any(tuple(words[place : place + size]) == row for place in range(len(words) - size + 1))


def _means_it(row: tuple[str, ...], words: list[str], sample: list[Any]) -> bool:
    if row not in _AMBIGUOUS or len(words) == 1 or words[-1:] == list(row):
        return True
    shape = _AMBIGUOUS[row]
    return shape is not None and any(shape.fullmatch(str(value)) for value in sample)


def _of_a_person(whose: list[str]) -> bool:
    """Return whether a name is a person's; a plain `name` is ambiguous."""
    return not whose or not _PEOPLE.isdisjoint(whose)


_SCRUBBER = Scrubber()


def _by_shape(name: str, sample: list[Any]) -> frozenset[Category]:
    hint = hint_of(name)
    hits: dict[str, int] = {}
    for value in sample:
        for family in _families_in(value, hint):
            hits[family] = hits.get(family, 0) + 1
    return frozenset(
        FAMILIES[family].category
        for family, count in hits.items()
        if not isinstance(FAMILIES[family].gate, Digits) or count >= CHANCE_SHARE * len(sample)
    )


def _families_in(value: Any, hint: bytes) -> set[str]:
    if isinstance(value, dict | list | tuple):
        return set(_SCRUBBER.scrub_json(value).counts)
    try:
        text = text_of(value)
    except TypeError:  # times and decimals, which a database returns in addition to JSON types
        text = str(value)
    return {finding.family for finding in _SCRUBBER.scrub(text, hint=hint).findings} if text else set()


def _without_categories(words: list[str], sample: list[Any]) -> Sensitivity:
    if not words and not sample:
        return Sensitivity.CONFIDENTIAL  # unknown content
    texts = [value for value in sample if isinstance(value, str)]
    nested = any(isinstance(value, dict | list | tuple) for value in sample)
    prose = bool(texts) and sum(map(len, texts)) > PROSE_CHARS * len(texts)
    if nested or prose or (not _PROSE.isdisjoint(words) and not (sample and not texts)):
        return Sensitivity.CONFIDENTIAL
    if words[-1:] in (["id"], ["uuid"], ["guid"], ["hash"], ["key"]) or (texts and all(map(_UUID.fullmatch, texts))):
        return Sensitivity.INTERNAL
    return Sensitivity.PUBLIC
