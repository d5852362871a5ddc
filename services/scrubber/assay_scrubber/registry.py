"""All families, by name, in order of rank. A new family is a module in `families/` and a line here."""

from types import MappingProxyType

from .families import bearer_token, connection_url, email, jwt, payment_card, phone, us_ssn
from .family import Family

_MODULES = (connection_url, jwt, bearer_token, email, payment_card, us_ssn, phone)

FAMILIES: MappingProxyType[str, Family] = MappingProxyType(
    {family.name: family for family in sorted((module.FAMILY for module in _MODULES), key=lambda f: f.rank)}
)
