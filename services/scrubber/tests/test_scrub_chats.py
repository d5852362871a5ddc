"""Secrets and addresses as people put them into chats, and what only sounds so."""

import pytest

from assay_scrubber.engine import Scrubber

GOES = [
    ("hey, user is marta, pass is merlin8883", "merlin8883"),
    ("I forgot, is my password still Pepper1968?", "Pepper1968"),
    ("i changed it from kestrel3515 to Sunset2007!, neither password works", "kestrel3515"),
    ("i changed it from kestrel3515 to Sunset2007!, neither password works", "Sunset2007"),
    ("I changed my password from kestrel3515 to Sunset2007", "Sunset2007"),
    ("u: jsmith p: Banana2025!!", "Banana2025!!"),
    ("the password for the VPN (zebra9931) expired", "zebra9931"),
    ("zebra9931 - that's the wifi password", "zebra9931"),
    ("zebra9931, that's my password", "zebra9931"),
    ("Passwort geändert auf zebra9931", "zebra9931"),
    ("la clé wifi est zebra9931", "zebra9931"),
    ("here's my key: q8w7e6r5t4y3u2i1o0", "q8w7e6r5t4y3u2i1o0"),
    ("use this token q8w7e6r5t4y3u2i1o0", "q8w7e6r5t4y3u2i1o0"),
    ("they sent me 381924 as the verification code", "381924"),
    ("the door code is 4471#", "4471"),
    ("my bank pin 4471", "4471"),
    ("SIM PUK 47433195, PIN1 1782", "1782"),
    ("write to jo.berg [at] fjordmail [dot] no", "fjordmail"),
    ("it is jo at fjordmail dot no", "fjordmail"),
    ("it is jo at fjordmail dot no, thanks", "fjordmail"),
    ("it is jo at posta dot hu today", "posta"),
    ("hans.meier (ät) webpost.de", "webpost"),
    ("CVR DK15506199", "15506199"),
]
STAYS = [
    "auth.InvalidPassword: 48213",
    "raise InvalidPassword: 48213",
    "user is marta, pass is required",
    "the pass is at 3000m",
    "bypass is route66a",
    "is my password still valid?",
    "is my password still OAuth2?",
    "I changed it from v1.2.3 to v2.0.0, no password",
    "I changed it from kestrel3515 to Sunset2007",
    "I changed the password from plain to SHA256-hashed",
    "u: 12 p: 34",
    "u: admin p: read",
    "password for the VPN (beta2) expired",
    "password for the VPN (since 2024) expired",
    "password for the laptop (windows10) expired",
    "issue4242 - that's the wifi password bug",
    "Passwort geändert am 2024-05-01",
    "la clé est dans a12",
    "la clé wifi est perdue",
    "here's my key: value",
    "my_key = 'user42_profile'",
    "use this token to log in",
    "use this token parser2024",
    "they sent me 381924 as the order number",
    "status 504813 as the response code",
    "error code 4471",
    "my bank pin was stolen",
    "PIN1 is connected to GPIO17",
    "connect PIN1 1024 times",
    "the cat at home dot no matter what",
    "look at this dot at the end",
    "meet at noon dot no one came",
    "CVR is the Danish register",
]


@pytest.mark.parametrize(("text", "value"), GOES)
def test_it_goes(scrubber: Scrubber, text: str, value: str) -> None:
    scrubbed = scrubber.scrub(text).text
    assert value not in scrubbed
    assert scrubber.scrub(scrubbed).text == scrubbed


@pytest.mark.parametrize("text", STAYS)
def test_what_only_sounds_so_stays(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text).text == text
