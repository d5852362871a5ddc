"""Columns of a database: by name, by the shape of values, and several together."""

from itertools import permutations
from typing import Any

import pytest

from assay_scrubber.columns import (
    PUBLIC,
    SAMPLE,
    Classification,
    Sensitivity,
    classify_column,
    classify_rows,
    combine,
)
from assay_scrubber.taxonomy import Category

CARDS = [4111111111111111, 5500005555555559, 378282246310005]


@pytest.mark.parametrize(
    ("names", "categories"),
    [
        ("email userEmail emailAddress email2 EMAIL_ADDRESSES contact.e-mail useremail phone_number customerPhone", "contact"),
        ("first_name lastName full_name surname street_address billing_zip postcode city username patient_nickname", "contact"),
        ("salary baseSalary account_balance monthly_income", "financial"),
        ("card_number creditCard cvv iban routing_number swift", "payment_card"),
        ("diagnosis_code medications patient_id mrn blood_type is_pregnant", "health"),
        ("genotype rsid dna_sequence", "genetic"),
        ("fingerprint_biometric iris_scan voiceprint face_embedding", "biometric"),
        ("clickstream purchase_history", "behavioral"),
        ("ip ip_address client_ip device_id session_id cookie user_agent wallet_address", "online_identifier"),
        ("password passwordHash api_key apiKey private_key access_token seed_phrase connection_string", "credential"),
        ("ssn tax_id passport_number driver_license national_id cpf", "government_id"),
        ("lat longitude home_location gps_coordinates", "location"),
        ("dob date_of_birth birthDate gender ethnicity religion marital_status nationality", "demographic_protected"),
    ],
)  # fmt: skip
def test_a_name_says_its_category_however_it_is_written(names: str, categories: str) -> None:
    for name in names.split():
        found = classify_column(name)
        assert found.sensitivity is Sensitivity.PII, name
        assert categories in {str(category) for category in found.categories}, (name, found)


ORDINARY = """
id created_at token_count max_tokens tokens_total prompt_token_usage is_pinned pinned spinner pan_zoom_level
panel email_count has_email is_phone_verified password_changed_at product_name file_name column_name
company_logo quantity price storage_age_limit phone_type classname shipping_method language caribbean
description_length image_url page stage usage average race_condition_count
"""


@pytest.mark.parametrize("name", ORDINARY.split())
def test_what_is_only_about_a_thing_or_only_sounds_like_it_is_not_personal(name: str) -> None:
    assert classify_column(name).categories == frozenset(), name


def test_every_category_can_be_told_by_name() -> None:
    one_for_each = "email salary cvv diagnosis dna iris clickstream cookie password ssn gps gender"
    assert frozenset[Category]().union(
        *(classify_column(name).categories for name in one_for_each.split())
    ) == frozenset(Category)


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (["ann@example.com", "x"], {"contact"}),
        (["a note that mentions bob@example.com somewhere", None, ""], {"contact"}),
        (CARDS, {"payment_card"}),
        ([str(card) for card in CARDS], {"payment_card"}),
        (["postgres://u:pw12@host/db"], {"credential"}),
        ([{"deep": ["ann@example.com"]}], {"contact"}),
        (["123-45-6789"], {"government_id"}),
        ([1, 2, 3], set()),
        (["red", "green"], set()),
        ([True, False], set()),
    ],
)
def test_the_shape_of_values_says_what_the_name_does_not(values: list[Any], categories: set[str]) -> None:
    assert classify_column("c7", values).categories == categories


def test_a_number_that_passes_a_check_by_chance_does_not_make_a_column_of_cards() -> None:
    assert classify_column("order_ref", [CARDS[0], *range(10**15, 10**15 + 40)]).categories == frozenset()


@pytest.mark.parametrize(
    ("name", "values", "categories"),
    [
        ("address_id", [17, 18], set()),
        ("address_id", ["12 Main Street"], {"contact"}),
        ("patient_id", [17, 18], {"health"}),
        ("pin_code", ["Mumbai"], set()),
        ("pin_code", ["4711"], {"credential"}),
        ("tin_can", ["a", "b"], set()),
        ("email", [True, False], set()),
        ("pregnant", [True, False], {"health"}),
    ],
)
def test_values_decide_where_a_name_is_ambiguous(name: str, values: list[Any], categories: set[str]) -> None:
    assert classify_column(name, values).categories == categories


def test_a_name_is_a_persons_unless_its_table_or_prefix_says_otherwise() -> None:
    assert classify_column("name").categories == {"contact"}
    assert classify_column("name", table="customers").categories == {"contact"}
    assert classify_column("name", table="products") == PUBLIC
    assert classify_column("employeeName").categories == {"contact"}
    assert classify_column("device_name") == PUBLIC


@pytest.mark.parametrize(
    ("name", "values", "sensitivity"),
    [
        ("color", ["red"], Sensitivity.PUBLIC),
        ("order_id", [1], Sensitivity.INTERNAL),
        ("ref", ["01890a5d-ac96-774b-bcce-b302099a8057"], Sensitivity.INTERNAL),
        ("comment", [], Sensitivity.CONFIDENTIAL),
        ("c", ["words " * 20], Sensitivity.CONFIDENTIAL),
        ("c", [{"a": 1}], Sensitivity.CONFIDENTIAL),
        ("", [], Sensitivity.CONFIDENTIAL),
        ("_", [], Sensitivity.CONFIDENTIAL),
        ("comment", [1, 2], Sensitivity.PUBLIC),
    ],
)
def test_what_is_not_personal_is_still_told_apart(name: str, values: list[Any], sensitivity: Sensitivity) -> None:
    assert classify_column(name, values) == Classification(sensitivity)


def test_personal_data_has_a_category_and_nothing_else_has() -> None:
    with pytest.raises(ValueError, match="needs at least one category"):
        Classification(Sensitivity.PII)
    with pytest.raises(ValueError, match="needs at least one category"):
        Classification(Sensitivity.INTERNAL, frozenset({Category.CONTACT}))


def test_several_columns_are_as_sensitive_as_the_most_sensitive_and_of_all_their_categories_in_any_order() -> None:
    rows = [classify_column("email"), classify_column("salary"), classify_column("color"), classify_column("order_id")]
    for order in permutations(rows):
        assert combine(order) == Classification(Sensitivity.PII, frozenset({Category.CONTACT, Category.FINANCIAL}))
    assert combine([]) == PUBLIC
    assert combine(rows[2:]) == Classification(Sensitivity.INTERNAL)


def test_every_column_of_a_result_is_classified_also_one_that_only_late_rows_have() -> None:
    rows = [{"id": n, "who": "ann@example.com"} for n in range(SAMPLE + 5)] + [{"id": 0, "ssn": None}]
    found = classify_rows(rows)
    assert {name: sorted(map(str, row.categories)) for name, row in found.items()} == {
        "id": [], "who": ["contact"], "ssn": ["government_id"],
    }  # fmt: skip
    assert combine(found.values()).categories == {Category.CONTACT, Category.GOVERNMENT_ID}
