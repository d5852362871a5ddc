"""Held-out sentences: how each kind of value stands in prose, and what surrounds prose in what services send.

`{}` is where the value goes. None of these is used while rules are written or tuned.
"""

import json
import random
import urllib.parse
from collections.abc import Callable

from .values import NATIONAL

_PROSE = {
    "email": (
        "could you forward the invoice to {} before noon", "Cc: {}", "I signed up as {} but never got the activation link",
        "please unsubscribe {} from everything", "{} asked for a refund twice", "account owner: {}", "Reply-To: <{}>",
        "we only have {} on file for him", "Contact me at {}.", "invite sent to {}, awaiting answer", "my new address ({}) works",
        "the login {} is locked", "Von: {}", "escribe a {} y adjunta la factura", "hey, its {} here",
    ),
    "phone": (
        "You can reach me on my mobile {} after six", "Tel: {}", "my phone number changed to {}", "Please call {} if nobody opens",
        "fax {}", "phone: {}", "his cell is {}", "Telephone {} (reception)", "Mobile: {}", "WhatsApp me at {}",
        "the customer's phone is {}", "emergency contact, phone {}", "call me back at {} please", "Telefon: {}",
    ),
    "phone/bare": (
        "You can reach me on {} after six", "I moved, use {} from now on", "{} is where she answers", "front desk {}",
        "Ms Ito, {}", "numbers to try: {}", "left a message for {} yesterday", "the caller {} hung up", "Signed, J. ({})",
    ),
    "us_ssn": (
        "applicant's social is {}", "SSN {}", "her social security number is {}", "last filed under {}", "W-2 lists {}",
        "ssn: {}", "verify {} against the roster", "the employee with {} left in May", "Social Security No. {}",
    ),
    "us_ssn/announced": (
        "SSN {}", "social security number: {}", "her SSN is {}", "ssn={}", "Social Security No. {}", "my ssn, {}, was rejected",
    ),
    "payment_card": (
        "charge it to {} 09/27", "the card {} was declined", "{} exp 11/28 cvv 447", "refund to {}, please", "Visa {}",
        "card number {} expires 03/2029", "I paid with {} yesterday", "pan {} 812", "credit card: {}", "CC# {}",
        "use {} (valid thru 01/30, code 901)", "{} was charged twice", "number on the front: {}",
    ),
    "jwt": (
        "session token {} has expired", "id_token={}", "the gateway rejects {}", "Set-Cookie: sid={}; HttpOnly", "decoded {} by hand",
        "access_token: {}", "?jwt={}", "I pasted {} into the debugger", "X-Auth: {}",
    ),
    "bearer_token": (
        "Authorization: Bearer {}", "curl -s -H 'Authorization: Bearer {}' https://api.example.org/v2/me",
        'headers = {{"Authorization": "Bearer {}"}}', "authorization: bearer {}", "sent with Bearer {} and still got 401",
        '-H "Authorization: Bearer {}"', "req.header('Authorization', 'Bearer {}')", "> authorization: Bearer {}",
    ),
    "connection_url": (
        "export DATABASE_URL={}", "the worker cannot connect to {}", "dsn: {}", "create_engine('{}')", "see {} in the old config",
        "BROKER={}", "could not translate host in {}", "backup target is {} since Friday", "proxy {}", "pip --index-url {}",
    ),
    "api_key/vendor": (
        "rotate {} today", "token {} was committed by mistake", "export API_TOKEN={}", "client = Client(api_key='{}')", "key: {}",
        "the leaked one is {}", "login with {} instead", "secret={}", "found {} in the bundle", "X-Api-Key: {}",
    ),
    "api_key/named": (
        "client_secret={}", "api_key = '{}'", "API_KEY={}", "the api key is {}", "password: {}", "AWS_SECRET_ACCESS_KEY={}",
        'db_password = "{}"', "secret_key: {}", "PASSWORD={}", "access_token={}", "auth_token: '{}'", "private_token={}",
    ),
    "private_key": ("here is the key:\n{}\nplease install it", "{}", "cat id_rsa\n{}", "tls.key: |\n{}", "I lost the passphrase of\n{}"),
    "iban": (
        "transfer the deposit to {}", "IBAN: {}", "my account is {}", "Bitte auf {} überweisen", "beneficiary {}", "pay {} by Friday",
        "refund goes to {} as usual", "compte {}", "salary account {} is closed",
    ),
    "ip_address": (
        "login from {}", "client_ip={}", "{} was banned for an hour", "the user at {} keeps retrying", "X-Forwarded-For: {}",
        "remote address {} refused", "ping {}", "her home address on the net is {}", "blocked {} after 5 tries", "src={} dst=any",
    ),
    "mac_address": (
        "device {} joined the wifi", "mac={}", "lease for {} renewed", "the printer ({}) is offline", "ether {}", "Wake {} over lan",
        "hwaddr {}", "station {} authenticated",
    ),
    "crypto_wallet": (
        "send it to {}", "wallet: {}", "my address is {}", "donations {}", "withdrawal to {} is pending", "paid from {}",
        "the payout address {} changed",
    ),
    "us_bank/routing": (
        "routing number {}", "ABA: {}", "the bank's routing number is {}", "routing no. {}", "RTN {}", "wire, ABA routing {}",
    ),
    "us_bank/account": (
        "account number {}", "bank account {}", "my checking account number is {}", "acct no. {}", "savings account: {}",
        "direct deposit into account number {}", "bank acct {}",
    ),
    "passport": (
        "passport number {}", "Passport No: {}", "my passport is {}", "travels on passport {}", "passport no. {} expires in June",
        "Passport #{}", "Reisepass {}", "passeport n° {}", "número de pasaporte {}",
    ),
    "date_of_birth": (
        "date of birth: {}", "DOB {}", "born on {}", "D.O.B.: {}", "the patient, born {}, was discharged", "dob={}", "birthday: {}",
        "my date of birth is {}", "birth date {}", "geboren am {}", "né le {}", "fecha de nacimiento: {}",
    ),
}  # fmt: skip

_FILLER = (
    "thanks in advance", "I already tried the help page", "the order arrived late again", "nobody answered since Tuesday",
    "this is the third time", "let me know if you need more", "we closed ticket 48213 too early", "see v2.14.3 of the runbook",
    "it happened at 14:05 on 2025-02-11", "the parcel weighs 2.5 kg", "build 20250114.3 has the fix", "my colleague agrees",
    "total was $1,249.00", "step 3 of 7 failed", "the old flat is empty", "ça marche maintenant", "vielen Dank", "muchas gracias",
)  # fmt: skip


def phrases(variety: str) -> tuple[str, ...]:
    family = variety.partition("/")[0]
    if family == "national_id":
        words = NATIONAL[variety.partition("/")[2]][2]
        return tuple(
            form.format(w=word) for word in words for form in ("{w} {{}}", "{w} {{}}, valid", "form says {w} {{}}")
        )
    if variety in {"phone/e164", "phone/international"}:
        return _PROSE["phone"] + _PROSE["phone/bare"]
    if variety == "phone/us":
        return _PROSE["phone"] + _PROSE["phone/bare"]
    return _PROSE.get(variety, _PROSE.get(family, ()))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


# Each takes text before, the phrase, text after, and gives what is sent, with how the phrase is encoded in it.
Wrapper = tuple[str, str, Callable[[str], str]]


def _same(text: str) -> str:
    return text


def wrappers(rng: random.Random) -> Wrapper:
    """What stands before and after a phrase, and how the phrase is written there."""
    a, b = rng.choice(_FILLER), rng.choice(_FILLER)
    stamp = f"2025-0{rng.randrange(1, 10)}-1{rng.randrange(10)}T0{rng.randrange(10)}:{rng.randrange(10, 60)}:07.{rng.randrange(100, 999)}Z"
    ident = f"{rng.randrange(1 << 32):08x}"
    plain: list[Wrapper] = [
        (f"{a.capitalize()}. ", f". {b.capitalize()}.", _same),
        ("", "", _same),
        (f"Hi team,\n\n{a}. ", f"\n\n{b},\nKim", _same),
        (f"- {a}\n- ", f"\n- {b}\n", _same),
        (f"> {a}\n> ", "\n", _same),
        (f"{stamp} INFO app.worker[{rng.randrange(9999)}] req={ident} ", f" took {rng.randrange(900)} ms", _same),
        (f"[{ident}] user said: ", f" -- {b}", _same),
        (f"| {a} | ", f" | {b} |", _same),
        (f"# {a}\nvalue: ", "\n", _same),
        (f"{rng.randrange(9999)}\t{a}\t", f"\t{b}", _same),
        (f"<p>{a} <b>", f"</b> {b}</p>", _same),
        (f"Q: {a}? A: ", f"; {b}", _same),
    ]
    encoded: list[Wrapper] = [
        (f'{{"id": "{ident}", "role": "user", "content": "', f' {b}"}}', _quote),
        (f'{{"tool":"crm","args":{{"note":"{a}; ', f'","limit":{rng.randrange(99)}}}}}', _quote),
        (f'{stamp} {{"msg": "', f'", "trace": "{ident}{ident}"}}', _quote),
        (f'{rng.randrange(9999)},"', f'",{b.replace(",", "")},{stamp}', lambda text: text.replace('"', '""')),
        ('{"body": "{\\"text\\": \\"', '\\"}"}', lambda text: _quote(_quote(text))),
        (
            f"GET /search?page=2&q={urllib.parse.quote(a)}%20",
            f"&ref={ident} HTTP/1.1",
            lambda t: urllib.parse.quote(t, safe=""),
        ),
    ]
    return rng.choice(plain if rng.random() < 0.7 else encoded)
