# ruff: noqa: S311, SIM905  # a seeded generator of test data; lists of words read better as text
"""Labelled texts for the scrubber, generated from a seed: templates, renderings and values of our own making.

`labelled(n)` gives texts with the exact spans of what was planted; `clean(n)` gives texts without personal data that
are full of what looks like it: order numbers, timestamps, versions, UUIDs, hashes, prices, ISBNs, coordinates, code.
"""

import base64
import hashlib
import json
import random
from dataclasses import dataclass

SEED = 20240601

_FIRST = "ana ben chloe dmitri elif farid grace hiro ines jonas kemal lucia marek nadia omar petra".split()
_LAST = "lopez okafor schmidt tanaka novak silva haddad larsen rossi dubois kowalski nguyen".split()
_HOSTS = ("example.com", "example.org", "mail.example.net", "corp.example.co.uk", "uni.example.edu", "bücher.example")
_WORDS = (
    "the report shows that the index was rebuilt after the second run and every region answered faster than before "
    "while the team moved the older records into cold storage so that a search over the archive takes less time and "
    "nobody has to wait for results which depend on the weekly import of the catalogue from partners in other countries"
).split()


@dataclass(frozen=True)
class Text:
    """`spans`: (family, start, end) of everything planted."""

    text: str
    spans: tuple[tuple[str, int, int], ...]


def luhn_completed(rng: random.Random, prefix: str, length: int) -> str:
    """Random digits after `prefix`, the last one chosen so that the whole passes the Luhn check."""
    body = prefix + "".join(str(rng.randrange(10)) for _ in range(length - len(prefix) - 1))
    for check in "0123456789":
        total = 0
        for place, digit in enumerate(reversed(body + check)):
            value = int(digit) * (1 + place % 2)
            total += value - 9 * (value > 9)
        if total % 10 == 0:
            return body + check
    raise AssertionError("one of ten digits always fits")


def email(rng: random.Random) -> str:
    first, last = rng.choice(_FIRST), rng.choice(_LAST)
    local = rng.choice(
        [f"{first}.{last}", f"{first}{rng.randrange(100)}", f"{first}_{last}+news", f"{first[0]}{last}", f"o'{last}"]
    )
    return f"{local}@{rng.choice(_HOSTS)}"


def phone(rng: random.Random) -> str:
    def digits(count: int) -> str:
        return "".join(str(rng.randrange(10)) for _ in range(count))

    area, exchange = f"{rng.randrange(2, 10)}{digits(2)}", f"{rng.randrange(2, 10)}{digits(2)}"
    return rng.choice(
        [
            f"({area}) {exchange}-{digits(4)}",
            f"{area}-{exchange}-{digits(4)}",
            f"{area}.{exchange}.{digits(4)}",
            f"{area} {exchange} {digits(4)}",
            f"+1 {area} {exchange} {digits(4)}",
            f"+1{area}{exchange}{digits(4)}",
            f"1-{area}-{exchange}-{digits(4)}",
            f"+44 20 {rng.randrange(3, 9)}{digits(3)} {digits(4)}",
            f"+49 30 {rng.randrange(1, 9)}{digits(6)}",
            f"+33 1 {' '.join(digits(2) for _ in range(4))}",
            f"+34 9{digits(2)} {digits(3)} {digits(3)}",
            f"+91 9{digits(4)} {digits(5)}",
            f"+61 4{digits(2)} {digits(3)} {digits(3)}",
            f"+81-3-{rng.randrange(1, 9)}{digits(3)}-{digits(4)}",
            f"+5511{9}{digits(8)}",
            f"+86 13{digits(1)} {digits(4)} {digits(4)}",
            f"0044 20 7{digits(3)} {digits(4)}",
        ]
    )


def national_phone(rng: random.Random) -> str:
    """Stands only after a word that announces it."""

    def digits(count: int) -> str:
        return "".join(str(rng.randrange(10)) for _ in range(count))

    return rng.choice(
        [
            f"020 7{digits(3)} {digits(4)}",
            f"0{rng.randrange(6, 8)} {' '.join(digits(2) for _ in range(4))}",
            f"030/{rng.randrange(1, 9)}{digits(6)}",
            f"(0{rng.randrange(2, 9)}) {digits(4)} {digits(4)}",
            f"{rng.randrange(2, 10)}{digits(9)}",
            f"{rng.randrange(2, 10)}{digits(2)}-{digits(4)}",
        ]
    )


def us_ssn(rng: random.Random) -> str:
    return f"{rng.randrange(1, 900):03}-{rng.randrange(1, 100):02}-{rng.randrange(1, 10000):04}"


def payment_card(rng: random.Random) -> str:
    prefix, length, groups = rng.choice(
        [
            ("4", 16, (4, 4, 4, 4)),
            ("53", 16, (4, 4, 4, 4)),
            ("2223", 16, (4, 4, 4, 4)),
            ("6011", 16, (4, 4, 4, 4)),
            ("3540", 16, (4, 4, 4, 4)),
            ("34", 15, (4, 6, 5)),
            ("37", 15, (4, 6, 5)),
            ("36", 14, (4, 6, 4)),
        ]
    )
    number = luhn_completed(rng, prefix, length)
    separator = rng.choice(["", " ", "-", "."])
    parts, position = [], 0
    for size in groups:
        parts.append(number[position : position + size])
        position += size
    return separator.join(parts)


def _segment(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def jwt(rng: random.Random) -> str:
    header = _segment(json.dumps({"alg": "HS256", "typ": "JWT"}, separators=(",", ":")).encode())
    payload = _segment(json.dumps({"sub": rng.randrange(10**9), "iat": 1700000000}, separators=(",", ":")).encode())
    return f"{header}.{payload}.{_segment(rng.randbytes(32))}"


def bearer_token(rng: random.Random) -> str:
    return rng.choice(
        [rng.randbytes(16).hex(), base64.b64encode(rng.randbytes(24)).decode(), _segment(rng.randbytes(20))]
    )


def connection_url(rng: random.Random) -> str:
    user, password = (
        rng.choice(_FIRST),
        rng.choice([rng.randbytes(6).hex(), "p@ss/" + rng.randbytes(4).hex(), "s3cr3t!"]),
    )
    return rng.choice(
        [
            f"postgres://{user}:{password}@db.example.com:5432/app",
            f"postgresql+psycopg://{user}:{password}@10.0.0.5/app?sslmode=require",
            f"mongodb+srv://{user}:{password}@cluster0.example.net/app?retryWrites=true",
            f"redis://:{password}@cache.example.com:6379/0",
            f"amqps://{user}:{password}@mq.example.com/vhost",
            f"https://{user}:{rng.randbytes(8).hex()}@api.example.com/v1",
            f"jdbc:mysql://db.example.com:3306/app?user={user}&password={rng.randbytes(5).hex()}",
        ]
    )


_ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _of(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def _digits(rng: random.Random, count: int) -> str:
    return _of(rng, "0123456789", count)


def private_key(rng: random.Random) -> str:
    kind = rng.choice(["RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED "])
    lines = [base64.b64encode(rng.randbytes(48)).decode() for _ in range(rng.randrange(2, 6))]
    newline = rng.choice(["\n", "\n", "\\n"])
    return newline.join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"])


def api_key(rng: random.Random) -> str:
    upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    return rng.choice(
        [
            "AKIA" + _of(rng, upper, 16),
            "ghp_" + _of(rng, _ALNUM, 36),
            "glpat-" + _of(rng, _ALNUM, 20),
            f"xoxb-{_digits(rng, 12)}-{_digits(rng, 12)}-{_of(rng, _ALNUM, 24)}",
            "sk_" + "live_" + _of(rng, _ALNUM, 24),
            "sk-proj-" + _of(rng, _ALNUM, 48),
            "AIza" + _of(rng, _ALNUM, 35),
            "npm_" + _of(rng, _ALNUM, 36),
            f"SG.{_of(rng, _ALNUM, 22)}.{_of(rng, _ALNUM, 43)}",
        ]
    )


def secret(rng: random.Random) -> str:
    return rng.choice(["s3cr3t-" + _of(rng, _ALNUM, 8), _of(rng, _ALNUM, 12) + "7!", rng.randbytes(9).hex() + "0x"])


def iban(rng: random.Random) -> str:
    country, body = rng.choice(
        [
            ("DE", _digits(rng, 18)),
            ("GB", _of(rng, "ABCDEFGH", 4) + _digits(rng, 14)),
            ("FR", _digits(rng, 20) + _of(rng, "ABC", 1) + _digits(rng, 2)),
            ("NL", "TEST" + _digits(rng, 10)),
            ("NO", _digits(rng, 11)),
        ]
    )
    turned = "".join(str(int(c, 36)) for c in body + country + "00")
    number = f"{country}{98 - int(turned) % 97:02}{body}"
    return number if rng.random() < 0.5 else " ".join(number[i : i + 4] for i in range(0, len(number), 4))


def ip_address(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return f"{rng.randrange(11, 120)}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
    groups = [f"{rng.randrange(0x1000, 0xFFFF):x}" for _ in range(rng.randrange(2, 5))]
    return "2001:db8:" + ":".join(groups[:2]) + ("::" + ":".join(groups[2:]) if len(groups) > 2 else "::7")


def mac_address(rng: random.Random) -> str:
    pairs = [f"{rng.randrange(256):02x}" for _ in range(4)]
    return rng.choice([":", "-"]).join(["02", "a" + pairs[0][1], *pairs])


def crypto_wallet(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return "0x" + rng.randbytes(20).hex()
    payload = b"\x00" + rng.randbytes(20)
    number = int.from_bytes(payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4], "big")
    digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    written = ""
    while number:
        number, digit = divmod(number, 58)
        written = digits[digit] + written
    zeros = len(payload) - len(payload.lstrip(b"\x00"))
    return "1" * zeros + written


def national_id(rng: random.Random) -> str:
    """Brazil's, formatted; Spain's; Great Britain's; Switzerland's."""
    number = [rng.randrange(10) for _ in range(9)]
    for _ in range(2):
        total = sum((len(number) + 1 - place) * digit for place, digit in enumerate(number))
        number.append((11 - total % 11) % 11 % 10)
    cpf = "".join(map(str, number))
    dni = rng.randrange(10_000_000, 99_999_999)
    ahv = "756" + _digits(rng, 9)
    check = -sum(int(digit) * (1 + 2 * (place % 2)) for place, digit in enumerate(ahv)) % 10
    return rng.choice(
        [
            f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}",
            f"{dni}{'TRWAGMYFPDXBNJZSQVHLCKE'[dni % 23]}",
            f"AB{_digits(rng, 6)}C",
            f"756.{ahv[3:7]}.{ahv[7:11]}.{ahv[11]}{check}",
        ]
    )


def passport(rng: random.Random) -> str:
    return rng.choice(["X" + _digits(rng, 7), _digits(rng, 9), "AB" + _digits(rng, 7)])


def driver_licence(rng: random.Random) -> str:
    return rng.choice(
        ["D" + _digits(rng, 7), _digits(rng, 8), f"S{_digits(rng, 3)}-{_digits(rng, 4)}-{_digits(rng, 4)}"]
    )


def bank_account(rng: random.Random) -> str:
    return _digits(rng, rng.randrange(8, 13))


def date_of_birth(rng: random.Random) -> str:
    day, month, year = rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(1930, 2010)
    return rng.choice(
        [f"{year}-{month:02}-{day:02}", f"{day:02}/{month:02}/{year}", f"{day} March {year}", f"June {day}, {year}"]
    )


MAKERS = {
    "email": (email, ("write to {}", "{}", "from {} on Monday", "author <{}>", "contact={}", "mailto:{}?subject=hi", "({})")),
    "phone": (phone, ("call {}", "{}", "my number is {} until five", "tel:{}", "fax {}", "reach us at {}, please")),
    "us_ssn": (us_ssn, ("ssn {}", "SSN: {}", "{} is on file", "taxpayer {}", "id={}")),
    "payment_card": (
        payment_card,
        ("card {}", "paid with {} 12/26", "{} 123", "exp 12/26 {}", "pan={}", "card {}, valid to 12/27", "charge {} today"),
    ),
    "jwt": (jwt, ("token: {}", "cookie session={}; path=/", "{}", "jwt {} expired")),
    "bearer_token": (bearer_token, ("Authorization: Bearer {}", "authorization: bearer {}", "curl -H 'Authorization: Bearer {}'")),
    "connection_url": (connection_url, ("connect to {}", "DATABASE_URL={}", "url: <{}>", "using {} failed")),
    "private_key": (private_key, ("key: {}", "{}", "PEM={} .")),
    "api_key": (api_key, ("key {}", "{}", "TOKEN={}", "use '{}' here", "url?k={}")),
    "secret": (secret, ("password={}", "my password is {}", "password: '{}'", "db_password: {}")),
    "iban": (iban, ("iban {}", "{}", "pay to {}, thanks", "account={}")),
    "ip_address": (ip_address, ("from {}", "{}", "client {} connected", "ip={}")),
    "mac_address": (mac_address, ("mac {}", "{}", "device {} joined")),
    "crypto_wallet": (crypto_wallet, ("wallet {}", "{}", "send to {}, please")),
    "national_id": (national_id, ("id {}", "{}", "number {} on file")),
    "passport": (passport, ("passport {}", "passport no. {}", "passport number: {}")),
    "driver_licence": (driver_licence, ("driver's license {}", "driving licence number {}")),
    "bank_account": (bank_account, ("bank account {}", "account number: {}")),
    "date_of_birth": (date_of_birth, ("born on {}", "DOB: {}", "date of birth {}", "birthday {}")),
}  # fmt: skip
_ANNOUNCED = ("phone {}", "tel. {}", "mobile: {}", "telephone number is {}", "fax {}")


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words))


def _look_alike(rng: random.Random) -> str:
    hexes = rng.randbytes(20).hex()
    return rng.choice(
        [
            f"id {hexes[:8]}-{hexes[8:12]}-4{hexes[13:16]}-a{hexes[17:20]}-{hexes[20:32]}",
            f"sha {hexes}",
            f"at {rng.randrange(1_600_000_000, 1_800_000_000)}",
            f"at {rng.randrange(1_600_000_000_000, 1_800_000_000_000)} ms",
            f"on 2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:15:30.123456Z",
            f"version {rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9999)}",
            f"price ${rng.randrange(1, 999)},{rng.randrange(100, 999)}.99",
            f"order {rng.randrange(10**9, 10**10)}",
            f"order 123-456-{rng.randrange(10**6, 10**7)}",
            f"ticket #{rng.randrange(10**6)}",
            f"ISBN 978-0-{rng.randrange(100, 999)}-{rng.randrange(10000, 99999)}-{rng.randrange(10)}",
            f"arXiv:2401.{rng.randrange(10000, 99999)}",
            f"at {rng.uniform(-90, 90):.6f}, {rng.uniform(-180, 180):.6f}",
            "counts 1000 2000 3000 4000",
            f"years 2019-2023, pages {rng.randrange(100, 400)}-{rng.randrange(400, 900)}",
            f"https://docs.example.com/v{rng.randrange(9)}/@scope/page?id={rng.randrange(10**6)}",
            "git clone git@git.example.com:team/project",
            f"package@{rng.randrange(20)}.{rng.randrange(20)}.0-beta.rc",
            "bearer certificates and the bearer of this note",
            f"host 127.0.{rng.randrange(256)}.{rng.randrange(256)}:8080",
            f"rows[{rng.randrange(100)}:{rng.randrange(100, 10**6)}] += x @ w",
            f"tool call {rng.randrange(10**9, 10**10)} took 12 ms",
            f"progress 45% of {rng.randrange(10**7)} rows",
            f"lot 00{rng.randrange(10**9, 10**10)}",
        ]
    )


def clean(count: int, seed: int = SEED) -> list[str]:
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        parts = [sentence(rng, rng.randrange(4, 14))]
        for _ in range(rng.randrange(3)):
            parts += [_look_alike(rng), sentence(rng, rng.randrange(3, 9))]
        texts.append(", ".join(parts))
    return texts


def labelled(count: int, seed: int = SEED, most: int = 3) -> list[Text]:
    """Texts with one to `most` planted values each; one in seven is a JSON document holding such a text."""
    rng = random.Random(seed)
    return [_labelled(rng, most) for _ in range(count)]


def _labelled(rng: random.Random, most: int) -> Text:
    text, spans = "", []
    for _ in range(rng.randrange(1, most + 1)):
        text += sentence(rng, rng.randrange(2, 8)) + ", "
        family = rng.choice(list(MAKERS))
        maker, templates = MAKERS[family]
        if family == "phone" and rng.random() < 0.2:
            maker, templates = national_phone, _ANNOUNCED
        value, template = maker(rng), rng.choice(templates)
        before, after = template.split("{}")
        start = len(text) + len(before)
        text += before + value + after + " ; "
        spans.append((family, start, start + len(value)))
    text += sentence(rng, rng.randrange(2, 8))
    if rng.random() < 1 / 7:
        head = '{"tool":"search","args":{"query":"'
        body = text.replace('"', "'")
        spans = [(family, start + len(head), end + len(head)) for family, start, end in spans]
        text = head + body + '"}}'
    return Text(text, tuple(spans))
