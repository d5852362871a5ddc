"""Numbers and dates of persons as people of other countries write them, and what looks like them."""

import pytest

from assay_scrubber.engine import Scrubber

# text, what of it has to go, and its family
GONE = [
    ("4111 1111 1111 1111/737", "737", "payment_card"),
    ("john@例え.jp", "john@例え.jp", "email"),
    ("mon num c'est le 06 12 34 56 78", "06 12 34 56 78", "phone"),
    ("mon num c'est le 0612345678", "0612345678", "phone"),
    ("mi número es 612 345 678", "612 345 678", "phone"),
    ("mi número es 612345678", "612345678", "phone"),
    ("il mio numero è 347 1234567", "347 1234567", "phone"),
    ("il mio numero è 3471234567", "3471234567", "phone"),
    ("мой номер 8 912 345 67 89", "912 345 67 89", "phone"),
    ("мой номер 89123456789", "89123456789", "phone"),
    ("hp 081234567890", "081234567890", "phone"),
    ("hp: 0812 3456 7890", "0812 3456 7890", "phone"),
    ("KVNR A123456780", "A123456780", "national_id"),
    ("Krankenversichertennummer: A123456780", "A123456780", "national_id"),
    ("Steuernummer 181/815/08155", "181/815/08155", "national_id"),
    ("Steuernummer: 93815/08152", "93815/08152", "national_id"),
    ("MBI 1EG4-TE5-MK73", "1EG4-TE5-MK73", "national_id"),
    ("Medicare number 1EG4TE5MK73", "1EG4TE5MK73", "national_id"),
    ("д.р. 12.03.1985", "12.03.1985", "date_of_birth"),
    ("VIN 1M8GDM9AXKP042788", "1M8GDM9AXKP042788", "driver_licence"),
    ("VIN: 1HGCM82633A004352", "1HGCM82633A004352", "driver_licence"),
    ("Fahrgestellnummer WVWZZZ1JZXW000001", "WVWZZZ1JZXW000001", "driver_licence"),
    ("4111111111111111/737", "737", "payment_card"),
    ("4111 1111 1111 1111 12/27 737", "737", "payment_card"),
    ("4111111111111111|12|2027|737", "737", "payment_card"),
    ("4111 1111 1111 1111, 12/27, 737", "737", "payment_card"),
    ("ann@пример.рф", "ann@пример.рф", "email"),
    ("mail: jo@例子.com", "jo@例子.com", "email"),
    ("连系 jo@公司.cn 谢谢", "jo@公司.cn", "email"),
    ("mi num es 612 345 678", "612 345 678", "phone"),
    ("meu número é 912345678", "912345678", "phone"),
    ("moj numer 601 234 567", "601 234 567", "phone"),
    ("mon numéro est le 06.12.34.56.78", "06.12.34.56.78", "phone"),
    ("mi número: 612345678", "612345678", "phone"),
    ("мой номер: +7 912 345-67-89", "912 345-67-89", "phone"),
    ("мій номер 0671234567", "0671234567", "phone"),
    ("no hp saya 0812-3456-7890", "0812-3456-7890", "phone"),
    ("WA 081234567890", "081234567890", "phone"),
    ("Meine KVNR lautet A123456780", "A123456780", "national_id"),
    ('"kvnr": "A123456780"', "A123456780", "national_id"),
    ("St.-Nr. 181/815/08155", "181/815/08155", "national_id"),
    ("Steuer-Nr.: 181/815/08155", "181/815/08155", "national_id"),
    ("Meine Steuernummer ist 93815/08152", "93815/08152", "national_id"),
    ("Medicare ID: 1EG4-TE5-MK73", "1EG4-TE5-MK73", "national_id"),
    ('"mbi": "1EG4TE5MK73"', "1EG4TE5MK73", "national_id"),
    ("д.р.: 12.03.1985", "12.03.1985", "date_of_birth"),
    ("Д.Р. 12.03.1985 г.", "12.03.1985", "date_of_birth"),
    ("vehicle identification number: 1M8GDM9AXKP042788", "1M8GDM9AXKP042788", "driver_licence"),
    ('"vin":"1M8GDM9AXKP042788"', "1M8GDM9AXKP042788", "driver_licence"),
    ("VIN#1M8GDM9AXKP042788", "1M8GDM9AXKP042788", "driver_licence"),
    ("FIN: WVWZZZ1JZXW000001", "WVWZZZ1JZXW000001", "driver_licence"),
]
STAYS = [
    "tel quel, mobile first 2024 2025",
    "time 12:34:56:78:9a:bc frame",
    "hp 250",
    "engine 250 hp 2023 2024",
    "my number 42",
    "mi número favorito es 123456789",
    "VIN 12345",
    "Steuernummer fehlt",
    "Medicare 2024",
    "api_key=None, timeout=30",
    "wrong password 3 times",
    "4111 1111 1111 1112/737",
    "1234/737",
    "@例え.jp",
    "foo@bar",
    "num 612345678",
    "my number 5551234567",
    "numéro 12345",
    "mi número de pedido es 612345678",
    "номер 89123456789",
    "мой номер заказа 8912345",
    "hp 5",
    "hp: 100/200",
    "wa 98101",
    "KVNR fehlt",
    "A123456780",
    "st 181/815",
    "Steuernummer 12",
    "medicare part B 2024",
    "д.р. неизвестна",
    "VIN-Nummer",
    "vin 12345678901234567",
    "fin 2024",
    "chassis 42",
    "VIN ABCDEFGHJKLMNPRST",
    "time=12:34:56:78:9a:bc",
    "mobile 2023/2024 season",
    "phones 2019-2020 models",
]


@pytest.mark.parametrize(("text", "value", "family"), GONE)
def test_it_goes_and_scrubbing_again_changes_nothing(scrubber: Scrubber, text: str, value: str, family: str) -> None:
    scrubbed = scrubber.scrub(text)
    assert value not in scrubbed.text
    assert family in {finding.family for finding in scrubbed.findings}
    assert scrubber.scrub(scrubbed.text).text == scrubbed.text


@pytest.mark.parametrize("text", STAYS)
def test_what_only_looks_like_one_stays(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text).text == text
