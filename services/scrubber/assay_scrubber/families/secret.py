"""Match passwords, keys, tokens and codes that have no vendor prefix.

See `assay_scrubber.secrets`.
"""

from assay_scrubber.family import Family, Literals, Together
from assay_scrubber.secrets import (
    addresses,
    answers,
    assigned,
    calls,
    codes,
    commands,
    headers,
    members,
    named_values,
    nearby,
    pairs,
    prose,
    tables,
)
from assay_scrubber.taxonomy import Category

FAMILY = Family(
    name="secret",
    category=Category.CREDENTIAL,
    rank=45,
    gate=Literals((), mark=b":"),
    rules=assigned.RULES,
    keyed=members.keyed,
    description="Passwords, keys, tokens and codes after a keyword, header or command-line option.",
    examples=(
        "password=hunter2!",
        'api_key: "9f8e7d6c5b4a39281706"',
        "<password>hunter2</password>",
        "Authorization: Basic dXNlcjpwYXNz",
        "Cookie: PHPSESSID=7e6f1c0b2a9d8e4f; theme=dark",
        "mysql -u app -phunter2 shop",
        "Your verification code is 381924",
    ),
    counterexamples=(
        "password = get_password()",
        "token: str",
        "max_tokens=4096",
        "the password is required",
        "password=${PASSWORD}",
        "mysql -p shop",
        "error code 381924",
    ),
    more=(
        (Together(), (*prose.RULES, *nearby.RULES, *answers.RULES)),
        (Together(), (*assigned.UNMARKED, *calls.RULES, *assigned.IN_OTHER_LANGUAGES)),
        (Together(), commands.RULES),
        (Together(fewest=3), codes.RULES),
        (Together(), tables.RULES),
        (Together(), (*headers.RULES, *members.RULES)),
        (Together(), (*pairs.RULES, *named_values.RULES)),
        (Together(), addresses.RULES),
        (Literals((b"--pass",), mark=b"-"), (assigned.OPTION,)),
    ),
)
