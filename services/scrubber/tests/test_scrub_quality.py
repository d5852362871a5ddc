"""Recall and precision by family on a generated, labelled corpus."""

from collections import Counter
from types import ModuleType

import pytest

from assay_scrubber.engine import Scrubber
from assay_scrubber.registry import FAMILIES

# Share of planted values whose whole span is removed under the right name, and share of findings that were planted.
THRESHOLDS = {
    "email": (0.999, 0.999),
    "phone": (0.999, 0.999),
    "us_ssn": (0.999, 0.999),
    "payment_card": (0.999, 0.999),
    "jwt": (0.999, 0.999),
    "bearer_token": (0.999, 0.999),
    "connection_url": (0.999, 0.999),
    "private_key": (0.999, 0.999),
    "api_key": (0.999, 0.999),
    "secret": (0.99, 0.99),
    "iban": (0.999, 0.999),
    "ip_address": (0.999, 0.999),
    "mac_address": (0.999, 0.999),
    "crypto_wallet": (0.999, 0.999),
    "national_id": (0.999, 0.999),
    "passport": (0.999, 0.999),
    "driver_licence": (0.999, 0.999),
    "bank_account": (0.999, 0.999),
    "date_of_birth": (0.999, 0.999),
}


@pytest.fixture(scope="module")
def counts(scrubber: Scrubber, scrub_corpus: ModuleType) -> dict[str, Counter[str]]:
    planted, caught, found, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for labelled in scrub_corpus.labelled(4000):
        findings = scrubber.scrub(labelled.text).findings
        for family, start, end in labelled.spans:
            planted[family] += 1
            caught[family] += any(f.family == family and f.start <= start and end <= f.end for f in findings)
        for f in findings:
            found[f.family] += 1
            right[f.family] += any(
                f.family == n and f.start < end and start < f.end for n, start, end in labelled.spans
            )
    return {"planted": planted, "caught": caught, "found": found, "right": right}


def test_every_family_has_thresholds() -> None:
    assert set(THRESHOLDS) == set(FAMILIES)


@pytest.mark.parametrize("family", sorted(THRESHOLDS))
def test_recall_and_precision_reach_their_thresholds(family: str, counts: dict[str, Counter[str]]) -> None:
    assert counts["planted"][family] > 300
    recall = counts["caught"][family] / counts["planted"][family]
    precision = counts["right"][family] / counts["found"][family]
    least_recall, least_precision = THRESHOLDS[family]
    assert recall >= least_recall
    assert precision >= least_precision


def test_nothing_is_found_in_look_alikes(scrubber: Scrubber, scrub_corpus: ModuleType) -> None:
    wrong = [(text, scrubber.scrub(text).findings) for text in scrub_corpus.clean(4000)]
    assert [(text, findings) for text, findings in wrong if findings] == []
