"""Define the closed taxonomy of personal data: twelve categories; each family has one."""

from enum import StrEnum


class Category(StrEnum):
    """Categories of personal data."""

    CONTACT = "contact"
    FINANCIAL = "financial"
    PAYMENT_CARD = "payment_card"
    HEALTH = "health"
    GENETIC = "genetic"
    BIOMETRIC = "biometric"
    BEHAVIORAL = "behavioral"
    ONLINE_IDENTIFIER = "online_identifier"
    CREDENTIAL = "credential"
    GOVERNMENT_ID = "government_id"
    LOCATION = "location"
    DEMOGRAPHIC_PROTECTED = "demographic_protected"
