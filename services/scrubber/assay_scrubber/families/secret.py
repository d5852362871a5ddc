"""Passwords, keys, tokens and codes that no prefix marks, where something else gives them away. See `assay_scrubber.secrets`."""

import re
from collections.abc import Callable

from assay_scrubber.family import Family, Literals
from assay_scrubber.lexicon import Announces
from assay_scrubber.secrets import addresses, assigned, codes, commands, headers, prose, tables
from assay_scrubber.secrets.values import is_token, is_written
from assay_scrubber.taxonomy import Category

_HINT_PASSWORD = re.compile(
    rb"(?:^| )(?:password|passwd|passphrase|passcode|pass|pwd|psk|passwort|pgpassword|passord|mot de passe|motdepasse|%b|%b+)"
    rb"(?: [0-9]| value| string| confirm| confirmation| new| old)? $" % (b"|".join(assigned.FOREIGN), Announces.PASSWORD.byte)
)
_HINT_TOKEN = re.compile(
    rb"(?:^| )(?:secret|token|apikey|authtoken|credentials?|signature|auth|csrf|sessionid|jsessionid|phpsessid"
    rb"|(?:api|access|private|client|secret|signing|account|auth|subscription|encryption|webhook|master|shared|license) key(?: base)?|%b+) $"
    % Announces.TOKEN.byte
)


def _keyed(hint: bytes) -> Callable[[bytes], bool] | None:
    return is_written if _HINT_PASSWORD.search(hint) else is_token if _HINT_TOKEN.search(hint) else None


FAMILY = Family(
    name="secret",
    category=Category.CREDENTIAL,
    rank=45,
    gate=Literals((), mark=b":"),
    rules=assigned.RULES,
    keyed=_keyed,
    description="Passwords, keys, tokens and codes after the word, key, header or option that names them.",
    finds=(
        "password=hunter2!",
        'api_key: "9f8e7d6c5b4a39281706"',
        "<password>hunter2</password>",
        "Authorization: Basic dXNlcjpwYXNz",
        "Cookie: PHPSESSID=7e6f1c0b2a9d8e4f; theme=dark",
        "mysql -u app -phunter2 shop",
        "Your verification code is 381924",
    ),
    not_finds=(
        "password = get_password()",
        "token: str",
        "max_tokens=4096",
        "the password is required",
        "password=${PASSWORD}",
        "mysql -p shop",
        "error code 381924",
    ),
    more=(
        (Literals(()), (*prose.RULES, *assigned.UNMARKED, *commands.RULES, *codes.RULES, *tables.RULES, *headers.RULES, headers.AUTHORIZATION, *addresses.RULES)),
        (Literals((b"--pass",), mark=b"-"), (assigned.OPTION,)),
    ),
)
