"""Passport numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("passport no. X1234567", ["X1234567"], "passport no. [REDACTED]"),
    ("Passport number: 123456789.", ["123456789"], "Passport number: [REDACTED]."),
    ('{"passport_number": "AB123456"}', ["AB123456"], '{"passport_number": "[REDACTED]"}'),
    ("Reisepass C01X00T47", ["C01X00T47"], "Reisepass [REDACTED]"),
    (
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10",
        ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"],
        "[REDACTED]",
    ),
    ("Passport #12AB34567", ["12AB34567"], "Passport #[REDACTED]"),
    ("Passport: CF4HJKLM7", ["CF4HJKLM7"], "Passport: [REDACTED]"),
    ("passport CFGHJKLM4 of 2", ["CFGHJKLM4"], "passport [REDACTED] of 2"),
    ("passport AB 123 4567", ["AB 123 4567"], "passport [REDACTED]"),
    ("passport issued in Berlin: AB1234567", ["AB1234567"], "passport issued in Berlin: [REDACTED]"),
    ("número de pasaporte: XDA123456", ["XDA123456"], "número de pasaporte: [REDACTED]"),
    ("Passeport n° 12AB34567", ["12AB34567"], "Passeport n° [REDACTED]"),
    ("numéro de passeport : 12AB34567", ["12AB34567"], "numéro de passeport : [REDACTED]"),
    ("Pass-Nr: C01X00T47", ["C01X00T47"], "Pass-Nr: [REDACTED]"),
    ("Numer paszportu to EA1234567", ["EA1234567"], "Numer paszportu to [REDACTED]"),
    ("<td>Passport</td><td>AB1234567</td>", ["AB1234567"], "<td>Passport</td><td>[REDACTED]</td>"),
    (r'{"passport":"\tAB1234567"}', ["AB1234567"], r'{"passport":"\t[REDACTED]"}'),
    ("паспорт 4510 123456", ["4510 123456"], "паспорт [REDACTED]"),
    ("护照号 E12345678", ["E12345678"], "护照号 [REDACTED]"),
    ("パスポート番号 TK1234567", ["TK1234567"], "パスポート番号 [REDACTED]"),
    ("여권번호 M12345678", ["M12345678"], "여권번호 [REDACTED]"),
    ("جواز السفر A12345678", ["A12345678"], "جواز السفر [REDACTED]"),
    (
        "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<",
        ["I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<"],
        "[REDACTED]",
    ),
    (
        "I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<D231458907UTO7408122F1204159<<<<<<<6",
        ["I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<D231458907UTO7408122F1204159<<<<<<<6"],
        "[REDACTED]",
    ),
    (
        "V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<\\nL8988901C4XXX4009078F9612109<<<<<<<<",
        ["V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<\\nL8988901C4XXX4009078F9612109<<<<<<<<"],
        "[REDACTED]",
    ),
    ("9100989012USA8001014F2501017900081942<716473", ["9100989012USA8001014F2501017900081942<716473"], "[REDACTED]"),
    ("паспорт гражданина серия 4612 номер 775301", ["4612 номер 775301"], "паспорт гражданина серия [REDACTED]"),
    ("residence permit no. RX1234567", ["RX1234567"], "residence permit no. [REDACTED]"),
    ("Aufenthaltstitel: Y98765432", ["Y98765432"], "Aufenthaltstitel: [REDACTED]"),
    ("visa_no=30412345678", ["30412345678"], "visa_no=[REDACTED]"),
    ("carta d'identità n. AB12345CD", ["AB12345CD"], "carta d'identità n. [REDACTED]"),
    ("Personalausweisnummer: L01X00T471", ["L01X00T471"], "Personalausweisnummer: [REDACTED]"),
    ("mein Ausweis hat die Nummer L01X00T471", ["L01X00T471"], "mein Ausweis hat die Nummer [REDACTED]"),
    ("dowód osobisty ABC123456", ["ABC123456"], "dowód osobisty [REDACTED]"),
]
KEPT = [
    "USB: WD My Passport (0x1058:0x0830)",
    "PST PDT PWT PPT|80 70 70 70|0101",
    "X1234567",
    "passport application of 2024",
    "passport control at gate 12",
    "passportization 1234567",
    "passport expires on 20240101",
    "passport 12-03-2024",
    "passport-jwt strategy RS256",
    "the pass no 12 of 14 rows",
    "std::cout << x << y << 1234567",
    "<<<<<<< HEAD\n1234567",
    "1 << 12 << 3",
    "visa number of the applicants in 2024",
    "residence permit valid for 24 months",
    "visa no longer needed since 2019",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_passport_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("passport", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_passport_stays(check: Callable[..., None], text: str) -> None:
    check("passport", text, [], text)
