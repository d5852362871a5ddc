# ruff: noqa: SIM905  # lists of words read better as text
"""Values of every family, made by libraries that know nothing of the scrubber's rules. Runs in the peers' environment.

Each maker takes a seeded `random.Random` and returns a value as people write it. A variety is `family/name`; its family
is what a finding is expected to be called.
"""

import base64
import hashlib
import hmac
import ipaddress
import json
import random
import string
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache

import phonenumbers
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from faker import Faker
from stdnum import verhoeff
from stdnum.us import rtn

Maker = Callable[[random.Random], str]

LOCALES = ("en_US", "en_GB", "de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL", "pl_PL", "pt_BR", "sv_SE", "tr_TR", "ro_RO")
#: Where most telephones are; other regions share a third of the sample.
POPULOUS = (
    "US GB DE FR IT ES NL PL BR SE TR RO IN CN JP KR ID NG PK BD RU MX PH VN EG IR TH ZA AR CO UA MY AU CA BE CH AT PT "
    "DK NO FI IE GR CZ HU IL SA AE SG NZ CL PE"
).split()
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


@cache
def _faker(locale: str) -> Faker:
    return Faker(locale)


def fake(rng: random.Random, locale: str) -> Faker:
    faker = _faker(locale)
    faker.seed_instance(rng.randrange(1 << 62))
    return faker


def chars(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def digits(rng: random.Random, count: int) -> str:
    return chars(rng, string.digits, count)


def email(rng: random.Random) -> str:
    faker = fake(rng, rng.choice(LOCALES))
    return rng.choice(
        [
            faker.email,
            faker.free_email,
            faker.ascii_company_email,
            lambda: faker.email().upper(),
            lambda: faker.email().replace("@", f"+{faker.word()}@".replace(" ", "")),
            lambda: f"{faker.user_name()}@{faker.domain_word()}.{faker.domain_name()}",
        ]
    )()


def _number(rng: random.Random, region: str) -> phonenumbers.PhoneNumber:
    """A valid number of the region: its plan's example with other last digits."""
    kind = rng.choice([phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE])
    example = phonenumbers.example_number_for_type(region, kind) or phonenumbers.example_number(region)
    text = str(example.national_number)
    for _ in range(40):
        varied = phonenumbers.PhoneNumber(
            country_code=example.country_code, italian_leading_zero=example.italian_leading_zero
        )
        keep = max(len(text) - 5, 2)
        varied.national_number = int(text[:keep] + digits(rng, len(text) - keep))
        if phonenumbers.is_valid_number(varied):
            return varied
    return example


def _region(rng: random.Random) -> str:
    if rng.random() < 2 / 3:
        return rng.choice(POPULOUS)
    return rng.choice(sorted(phonenumbers.SUPPORTED_REGIONS))


def _phone(form: int) -> Maker:
    return lambda rng: phonenumbers.format_number(_number(rng, _region(rng)), form)


def phone_us(rng: random.Random) -> str:
    while True:
        number = f"{rng.randrange(201, 990)}{rng.randrange(200, 1000)}{digits(rng, 4)}"
        if phonenumbers.is_valid_number(phonenumbers.PhoneNumber(country_code=1, national_number=int(number))):
            break
    area, exchange, line = number[:3], number[3:6], number[6:]
    form = rng.choice(["({}) {}-{}", "{}-{}-{}", "{}.{}.{}", "1-{}-{}-{}", "+1 ({}) {}-{}", "({}){}-{}"])
    return form.format(area, exchange, line)


def us_ssn(rng: random.Random) -> str:
    return fake(rng, "en_US").ssn()


def us_ssn_plain(rng: random.Random) -> str:
    return us_ssn(rng).replace("-", rng.choice(["", " "]))


_CARDS = ("visa16", "mastercard", "amex", "discover", "jcb16", "diners")


def payment_card(rng: random.Random) -> str:
    while True:
        number = fake(rng, "en_US").credit_card_number(rng.choice(_CARDS))
        if not number.startswith("35") or 3528 <= int(number[:4]) <= 3589:  # JCB has no other
            break
    sizes = {15: (4, 6, 5), 14: (4, 6, 4)}.get(len(number), (4, 4, 4, 4))
    groups, at = [], 0
    for size in sizes:
        groups.append(number[at : at + size])
        at += size
    return rng.choice(["", "", " ", " ", "-"]).join(groups)


def _segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwt(rng: random.Random) -> str:
    header = {"typ": "JWT", "alg": rng.choice(["HS256", "RS256", "ES256", "EdDSA"])}
    if rng.random() < 0.5:
        header = {"alg": header["alg"], "kid": chars(rng, _ALNUM, 10), "typ": "JWT"}
    claims = {
        "iss": "https://id." + fake(rng, "en_US").domain_name(),
        "sub": chars(rng, _HEX, 24),
        "exp": rng.randrange(1 << 31),
    }
    body = f"{_segment(json.dumps(header).encode())}.{_segment(json.dumps(claims).encode())}"
    size = {"HS256": 32, "RS256": 256}.get(header["alg"], 64)
    signature = hmac.digest(rng.randbytes(16), body.encode(), hashlib.sha512)
    return f"{body}.{_segment((signature * 4)[:size])}"


def bearer_token(rng: random.Random) -> str:
    return rng.choice(
        [
            lambda: chars(rng, _HEX, rng.choice([32, 40, 64])),
            lambda: chars(rng, _ALNUM, rng.randrange(20, 60)),
            lambda: base64.b64encode(rng.randbytes(rng.randrange(16, 40))).decode(),
            lambda: _segment(rng.randbytes(rng.randrange(16, 40))),
            lambda: ".".join(chars(rng, _ALNUM + "-_", rng.randrange(12, 40)) for _ in range(2)),
            lambda: fake(rng, "en_US").uuid4(),
        ]
    )()


def connection_url(rng: random.Random) -> str:
    faker = fake(rng, "en_US")
    user, host = faker.user_name(), faker.hostname()
    password = rng.choice(
        [chars(rng, _ALNUM, rng.randrange(6, 24)), chars(rng, _ALNUM, 6) + rng.choice("!$*_-.") + chars(rng, _ALNUM, 6),
         faker.word() + digits(rng, 3), chars(rng, _ALNUM, 5) + "%40" + chars(rng, _ALNUM, 5)]
    )  # fmt: skip
    return rng.choice(
        [
            f"postgresql://{user}:{password}@{host}:5432/{faker.word()}",
            f"postgresql+asyncpg://{user}:{password}@{faker.ipv4()}/{faker.word()}",
            f"mysql://{user}:{password}@{host}:3306/{faker.word()}?charset=utf8mb4",
            f"mongodb+srv://{user}:{password}@{host}/{faker.word()}?w=majority",
            f"rediss://default:{password}@{host}:6380/1",
            f"redis://:{password}@{host}:6379",
            f"amqp://{user}:{password}@{host}//",
            f"clickhouse://{user}:{password}@{host}:9000/default",
            f"snowflake://{user}:{password}@acc-eu1/db/public?warehouse=w",
            f"https://{user}:{password}@{host}/index/",
            f"ftp://{user}:{password}@{host}/pub",
            f"jdbc:postgresql://{host}:5432/{faker.word()}?user={user}&password={password}",
            f"smtp://{user}:{password}@{host}:587",
            f"socks5://{user}:{password}@{faker.ipv4()}:1080",
        ]
    )


_VENDORS: dict[str, Maker] = {
    "aws_access_key": lambda r: r.choice(["AKIA", "ASIA"]) + chars(r, string.ascii_uppercase + "234567", 16),
    "github": lambda r: r.choice(["ghp_", "gho_", "ghs_"]) + chars(r, _ALNUM, 36),
    "github_fine_grained": lambda r: "github" + "_pat_" + chars(r, _ALNUM, 22) + "_" + chars(r, _ALNUM, 59),
    "gitlab": lambda r: "glpat-" + chars(r, _ALNUM + "_-", 20),
    "slack": lambda r: f"xox{r.choice('bp')}-{digits(r, 12)}-{digits(r, 12)}-{chars(r, _ALNUM, 24)}",
    "slack_webhook": lambda r: (
        f"https://hooks.slack.com/services/T{chars(r, string.ascii_uppercase + string.digits, 8)}"
        f"/B{chars(r, string.ascii_uppercase + string.digits, 8)}/{chars(r, _ALNUM, 24)}"
    ),
    "stripe": lambda r: (
        r.choice(["sk", "rk"]) + "_" + r.choice(["live", "test"]) + "_" + chars(r, _ALNUM, r.choice([24, 99]))
    ),
    "openai": lambda r: "sk-proj-" + chars(r, _ALNUM + "_-", 60) + "T3BlbkFJ" + chars(r, _ALNUM + "_-", 60),
    "anthropic": lambda r: "sk-ant-api03-" + chars(r, _ALNUM + "_-", 93) + "AA",
    "google": lambda r: "AIza" + chars(r, _ALNUM + "_-", 35),
    "google_oauth": lambda r: "GOCSPX-" + chars(r, _ALNUM + "_-", 28),
    "sendgrid": lambda r: f"SG.{chars(r, _ALNUM + '_-', 22)}.{chars(r, _ALNUM + '_-', 43)}",
    "npm": lambda r: "npm_" + chars(r, _ALNUM, 36),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + chars(r, _ALNUM + "_-", 120),
    "huggingface": lambda r: "hf_" + chars(r, string.ascii_letters, 34),
    "digitalocean": lambda r: "dop_v1_" + chars(r, _HEX, 64),
    "shopify": lambda r: r.choice(["shpat_", "shpss_"]) + chars(r, _HEX, 32),
    "databricks": lambda r: "dapi" + chars(r, _HEX, 32),
    "vault": lambda r: "hvs." + chars(r, _ALNUM + "_-", 90),
    "grafana": lambda r: f"glsa_{chars(r, _ALNUM, 32)}_{chars(r, _HEX, 8)}",
    "twilio": lambda r: "SK" + chars(r, _HEX, 32),
    "telegram": lambda r: f"{digits(r, 9).replace('0', '7')}:AA{chars(r, _ALNUM + '_-', 33)}",
    "linear": lambda r: "lin_api_" + chars(r, _ALNUM, 40),
    "groq": lambda r: "gsk_" + chars(r, _ALNUM, 52),
    "mailgun": lambda r: "key-" + chars(r, _HEX, 32),
    "postman": lambda r: f"PMAK-{chars(r, _HEX, 24)}-{chars(r, _HEX, 34)}",
    "newrelic": lambda r: "NRAK-" + chars(r, string.ascii_uppercase + string.digits, 27),
    "azure_storage": lambda r: "AccountKey=" + base64.b64encode(r.randbytes(64)).decode(),
}


def vendor_key(rng: random.Random) -> str:
    return _VENDORS[rng.choice(sorted(_VENDORS))](rng)


def named_secret(rng: random.Random) -> str:
    """Stands only where a name such as `client_secret` announces it (see `carriers`)."""
    return rng.choice(
        [
            lambda: chars(rng, _ALNUM, rng.randrange(20, 48)),
            lambda: chars(rng, _HEX, rng.choice([32, 40, 64])),
            lambda: base64.b64encode(rng.randbytes(30)).decode(),
            lambda: chars(rng, _ALNUM + "!#%^*", 16),
        ]
    )()


@cache
def _keys() -> tuple[bytes, ...]:
    """A dozen real keys in every usual envelope; the letters of their bodies are varied afterwards."""
    made = [
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
    ]
    made.append(ed25519.Ed25519PrivateKey.generate())
    pems = []
    for key in made:
        pems.append(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        pems.append(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        pems.append(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")))
    pems += [key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()) for key in made[:3]]
    return tuple(pems)


def private_key(rng: random.Random) -> str:
    lines = rng.choice(_keys()).decode().strip().split("\n")
    body = ["".join(rng.choice(_ALNUM) if c.isalnum() else c for c in line) for line in lines[1:-1]]
    return "\n".join([lines[0], *body, lines[-1]])


def private_key_one_line(rng: random.Random) -> str:
    return private_key(rng).replace("\n", "\\n")


def iban(rng: random.Random) -> str:
    locale = rng.choice(
        [
            "de_DE",
            "fr_FR",
            "en_GB",
            "es_ES",
            "it_IT",
            "nl_NL",
            "pl_PL",
            "pt_PT",
            "de_AT",
            "de_CH",
            "fi_FI",
            "nl_BE",
            "no_NO",
            "tr_TR",
        ]
    )
    number = fake(rng, locale).iban()
    if rng.random() < 0.5:
        return " ".join(number[at : at + 4] for at in range(0, len(number), 4))
    return number


def ipv4(rng: random.Random) -> str:
    faker = fake(rng, "en_US")
    return rng.choice([faker.ipv4_public, faker.ipv4_public, faker.ipv4_private])()


def ipv6(rng: random.Random) -> str:
    groups = [
        0x2001,
        *(rng.choice([0, 0, rng.randrange(1 << 16)]) for _ in range(3)),
        *(rng.randrange(1 << 16) for _ in range(4)),
    ]
    if rng.random() < 0.4:
        groups[4:7] = [0, 0, 0]
    if rng.random() < 0.2:
        groups[0] = 0xFE80
    address = ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))
    return rng.choice([address.compressed, address.compressed, address.exploded, address.compressed.upper()])


def mac_address(rng: random.Random) -> str:
    plain = fake(rng, "en_US").mac_address()
    compact = plain.replace(":", "")
    return rng.choice(
        [
            plain,
            plain.upper(),
            plain.replace(":", "-"),
            plain.replace(":", "-").upper(),
            f"{compact[:4]}.{compact[4:8]}.{compact[8:]}",
        ]
    )


#: Locale or maker of Faker, and the words that people put before such a number.
NATIONAL = {
    "br_cpf": ("pt_BR", "cpf", ("CPF", "meu CPF é", "CPF do cliente:")),
    "ca_sin": ("en_CA", "ssn", ("SIN", "social insurance number", "my SIN is")),
    "es_nie": ("es_ES", "nie", ("NIE", "número de NIE:", "su NIE es")),
    "es_nif": ("es_ES", "nif", ("DNI", "NIF:", "mi DNI es")),
    "fr_nir": ("fr_FR", "ssn", ("numéro de sécurité sociale", "NIR :", "n° de sécu")),
    "gb_nino": ("", "", ("National Insurance number", "NINO:", "NI number")),
    "in_aadhaar": ("", "", ("Aadhaar", "Aadhaar number:", "aadhaar no.")),
    "it_fiscale": ("it_IT", "ssn", ("codice fiscale", "C.F.", "codice fiscale:")),
    "kr_rrn": ("ko_KR", "ssn", ("RRN", "resident registration number", "주민등록번호")),
    "nl_bsn": ("nl_NL", "ssn", ("BSN", "burgerservicenummer", "mijn BSN is")),
    "no_fnr": ("no_NO", "ssn", ("fødselsnummer", "personnummer", "fnr")),
    "pl_pesel": ("pl_PL", "ssn", ("PESEL", "numer PESEL:", "mój PESEL to")),
    "ro_cnp": ("ro_RO", "ssn", ("CNP", "cod numeric personal", "CNP:")),
    "se_personnummer": ("sv_SE", "ssn", ("personnummer", "personnr", "mitt personnummer är")),
    "tr_tckn": ("tr_TR", "ssn", ("TC Kimlik No", "TCKN", "T.C. kimlik numarası")),
    "fi_hetu": ("fi_FI", "ssn", ("henkilötunnus", "HETU", "henkilötunnukseni on")),
    "cn_ric": ("zh_CN", "ssn", ("身份证号", "身份证号码：", "resident identity card")),
    "gb_nhs": ("", "", ("NHS number", "NHS no.", "patient's NHS number:")),
}  # fmt: skip


def national_id(name: str) -> Maker:
    locale, method, _ = NATIONAL[name]
    if name in _OWN:
        return _OWN[name]
    return lambda rng: str(getattr(fake(rng, locale), method)())


def _nhs(rng: random.Random) -> str:
    """Ten digits, the last one by weights 10 to 2 modulo 11 (NHS Data Dictionary, NHS NUMBER)."""
    while True:
        body = "9" + digits(rng, 8)
        check = -sum(int(d) * w for d, w in zip(body, range(10, 1, -1), strict=True)) % 11
        if check < 10:
            number = f"{body}{check}"
            return rng.choice([number, f"{number[:3]} {number[3:6]} {number[6:]}"])


def _nino(rng: random.Random) -> str:
    """Two letters that are in use, six digits, a letter from A to D (HMRC, NIM39110)."""
    while True:
        prefix = rng.choice("ABCEGHJKLMNOPRSTWXYZ") + rng.choice("ABCEGHJKLMNPRSTWXYZ")
        if prefix not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}:
            parts = [prefix, digits(rng, 2), digits(rng, 2), digits(rng, 2), rng.choice("ABCD")]
            return rng.choice(["", " "]).join(parts)


def _aadhaar(rng: random.Random) -> str:
    """Twelve digits, the first not 0 or 1, the last one by Verhoeff's scheme (UIDAI)."""
    body = rng.choice("23456789") + digits(rng, 10)
    number = body + verhoeff.calc_check_digit(body)
    return rng.choice([number, f"{number[:4]} {number[4:8]} {number[8:]}"])


def _rrn(rng: random.Random) -> str:
    """Birthday, century and sex, place, and a check digit by weights 2 to 9 and 2 to 5 modulo 11."""
    day = date(1950, 1, 1) + timedelta(days=rng.randrange(18_000))
    body = f"{day:%y%m%d}{rng.choice('12')}{digits(rng, 5)}"
    check = (11 - sum(int(d) * w for d, w in zip(body, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=True)) % 11) % 10
    return f"{body[:6]}-{body[6:]}{check}"


_OWN: dict[str, Maker] = {"gb_nhs": _nhs, "gb_nino": _nino, "in_aadhaar": _aadhaar, "kr_rrn": _rrn}


def _base58check(payload: bytes) -> str:
    data = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def _bech32(rng: random.Random, version: int, size: int) -> str:
    """BIP 173 and BIP 350 for main net."""
    bits = f"{int.from_bytes(rng.randbytes(size), 'big'):0{size * 8}b}"
    bits += "0" * (-len(bits) % 5)
    data = [version, *(int(bits[at : at + 5], 2) for at in range(0, len(bits), 5))]

    def polymod(values: list[int]) -> int:
        check = 1
        for value in values:
            top = check >> 25
            check = (check & 0x1FFFFFF) << 5 ^ value
            for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
                check ^= generator if top >> bit & 1 else 0
        return check

    prefix = [*(ord(c) >> 5 for c in "bc"), 0, *(ord(c) & 31 for c in "bc")]
    check = polymod([*prefix, *data, *[0] * 6]) ^ (1 if version == 0 else 0x2BC830A3)
    return "bc1" + "".join(_BECH32[d] for d in [*data, *(check >> 5 * (5 - at) & 31 for at in range(6))])


def crypto_wallet(rng: random.Random) -> str:
    return rng.choice(
        [
            lambda: _base58check(b"\0" + rng.randbytes(20)),
            lambda: _base58check(b"\5" + rng.randbytes(20)),
            lambda: _bech32(rng, 0, 20),
            lambda: _bech32(rng, 1, 32),
            lambda: "0x" + chars(rng, _HEX, 40),
        ]
    )()


def us_routing(rng: random.Random) -> str:
    body = rng.choice(["02", "03", "06", "07", "11", "12", "26", "31", "32"]) + digits(rng, 6)
    return body + rtn.calc_check_digit(body)


def us_account(rng: random.Random) -> str:
    return digits(rng, rng.randrange(8, 13)).replace("0", "3", 1)


def passport(rng: random.Random) -> str:
    return rng.choice(
        [
            lambda: fake(rng, "en_US").passport_number(),
            lambda: digits(rng, 9),
            lambda: rng.choice("CFGHJK") + chars(rng, "CFGHJKLMNPRTVWXYZ0123456789", 8),
            lambda: chars(rng, string.ascii_uppercase, 2) + digits(rng, 7),
            lambda: digits(rng, 2) + chars(rng, string.ascii_uppercase, 2) + digits(rng, 5),
        ]
    )()


def date_of_birth(rng: random.Random) -> str:
    day = date(1940, 1, 1) + timedelta(days=rng.randrange(25_000))
    form = rng.choice(
        [
            "%Y-%m-%d",
            "%m/%d/%Y",
            "%d/%m/%Y",
            "%d.%m.%Y",
            "%B %d, %Y",
            "%d %B %Y",
            "%b %d, %Y",
            "%d %b %Y",
            "%m-%d-%Y",
            "%Y/%m/%d",
        ]
    )
    return day.strftime(form)


#: variety -> maker. What stands before the `/` is the family.
MAKERS: dict[str, Maker] = {
    "email": email,
    "phone/e164": _phone(phonenumbers.PhoneNumberFormat.E164),
    "phone/international": _phone(phonenumbers.PhoneNumberFormat.INTERNATIONAL),
    "phone/national": _phone(phonenumbers.PhoneNumberFormat.NATIONAL),
    "phone/us": phone_us,
    "us_ssn": us_ssn,
    "us_ssn/announced": us_ssn_plain,
    "payment_card": payment_card,
    "jwt": jwt,
    "bearer_token": bearer_token,
    "connection_url": connection_url,
    "api_key/vendor": vendor_key,
    "api_key/named": named_secret,
    "private_key": private_key,
    "private_key/one_line": private_key_one_line,
    "iban": iban,
    "ip_address/v4": ipv4,
    "ip_address/v6": ipv6,
    "mac_address": mac_address,
    **{f"national_id/{name}": national_id(name) for name in NATIONAL},
    "crypto_wallet": crypto_wallet,
    "us_bank/routing": us_routing,
    "us_bank/account": us_account,
    "passport": passport,
    "date_of_birth": date_of_birth,
}
