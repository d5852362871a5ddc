"""All families, by name, in order of rank. A new family is a module in `families/` and a line here."""

from types import MappingProxyType

from .families import (
    api_key,
    bank_account,
    bearer_token,
    connection_url,
    crypto_wallet,
    date_of_birth,
    driver_licence,
    email,
    iban,
    ip_address,
    jwt,
    mac_address,
    national_id,
    passport,
    payment_card,
    phone,
    private_key,
    secret,
    us_ssn,
)
from .family import Family, Literals
from .taxonomy import Category

_MODULES = (
    private_key, connection_url, jwt, api_key, bearer_token, secret, email, iban, passport, driver_licence, payment_card,
    crypto_wallet, bank_account, us_ssn, mac_address, ip_address, phone, national_id, date_of_birth,
)  # fmt: skip

FAMILIES: MappingProxyType[str, Family] = MappingProxyType(
    {family.name: family for family in sorted((module.FAMILY for module in _MODULES), key=lambda f: f.rank)}
)

#: Families without rules, found only by the extra `ner`: policies can set their action.
NAMES: MappingProxyType[str, Family] = MappingProxyType(
    {
        name: Family(name, category, rank, Literals(()), ())
        for name, category, rank in (
            ("person_name", Category.CONTACT, 95),
            ("place_name", Category.LOCATION, 96),
        )
    }
)

#: Values redacted because of their key, with any content: no rule finds them, a policy's `scrub_keys` name the keys.
SCRUB_KEY = Family(
    "scrub_key",
    Category.CONTACT,
    97,
    Literals(()),
    (),
    "Values under the keys that the policy's scrub_keys name, whole.",
)

#: Families that policies can name although they have no rules.
WITHOUT_RULES: MappingProxyType[str, Family] = MappingProxyType({**NAMES, SCRUB_KEY.name: SCRUB_KEY})
