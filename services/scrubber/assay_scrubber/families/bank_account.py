"""Match national account and bank numbers after a keyword.

US routing numbers (ABA), accounts, UK sort codes, BSB.
"""

import re

from assay_scrubber.context_words import FILLER, rules_after, span_of_value
from assay_scrubber.family import Announced, AnnouncedRule, Family, View
from assay_scrubber.taxonomy import Category

_ROUTING = rb"([0-9]{4}[ \-]?[0-9]{4}[ \-]?[0-9])(?![0-9])"
_SORT = rb"([0-9]{2}[ \-]?[0-9]{2}[ \-]?[0-9]{2}|[0-9]{3}[ \-][0-9]{3}|[0-9]{8})(?![0-9])"
_ACCOUNT = rb"([0-9](?:[ \-]?[0-9]){5,16})(?![0-9])"
_KIND = re.compile(
    rb"(?:bank|checking|chequing|savings?|current|deposit|beneficiary|giro|payee|payroll|debit)[^a-z0-9]{1,3}$"
)
_NUMBER = re.compile(rb"[^a-z0-9\n]{1,3}(?:numbers?|num|no|nr|nbr)(?![a-z])|[^a-z0-9\n]{0,2}#")
_WORD = re.compile(rb"[a-z]+")
_WEIGHTS = (3, 7, 1) * 3
_PREFIXES = (*range(13), *range(21, 33), *range(61, 73), 80)


def aba(digits: bytes) -> bool:
    """Check the checksum and the assigned ranges of a US routing number."""
    total = sum(weight * (digit - 0x30) for weight, digit in zip(_WEIGHTS, digits, strict=True))
    return total % 10 == 0 and int(digits[:2]) in _PREFIXES and digits.strip(b"0") != b""


def _routing(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span(1) if aba(match.group(1).translate(None, b" -")) else None


def _account(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept an account number; `account` alone also names other accounts, so it needs a bank's word or an owner."""
    word = _WORD.match(match.group())
    start, end = match.start(), match.start() + (word.end() if word else 0)
    if _KIND.search(match.string, max(0, start - 16), start) or _NUMBER.match(match.string, end):
        return match.span(1)
    return None


_RULES = (
    *rules_after("routing routingnumber aba rtn transit fedwire ach", _ROUTING, _routing),
    *rules_after("sortcode bsb bankleitzahl blz", _SORT),
    AnnouncedRule(re.compile(rb"sort[ _\-]?code(?![a-z])%b%b" % (FILLER, _SORT)), span_of_value, needle=b"sort"),
    *rules_after("account acct", _ACCOUNT, _account),
    *rules_after("bankaccount kontonummer konto accountnumber acctnumber", _ACCOUNT),
)

FAMILY = Family(
    name="bank_account",
    category=Category.PAYMENT_CARD,
    rank=67,
    gate=Announced(),
    rules=_RULES,
    description="Bank account numbers, US routing numbers (ABA checksum), UK sort codes and BSBs, after a keyword.",
    examples=(
        "routing number 021000021",
        "bank account 000123456789",
        "account number: 12345678",
        "sort code 12-34-56",
    ),
    counterexamples=("021000021", "routing number 021000022", "account 12345678", "order number 12345678"),
)
