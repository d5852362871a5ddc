"""Users and passwords together, as people write them into chats, mails and notes, and what only looks so."""

import pytest

from assay_scrubber.engine import Scrubber

GOES = [
    ("bob@corp.org : Summer2023!", ["Summer2023!"]),
    ("the pw for prod is Tr0ub4dor", ["Tr0ub4dor"]),
    ("here's the login for the staging box:\njsmith:Pepper2031", ["Pepper2031"]),
    ("username: jsmith\npassword: pepperoni", ["pepperoni"]),
    ("my old password was Monkey77, new one Gorilla88!", ["Monkey77", "Gorilla88!"]),
    ("vpn creds jdoe/Maple!55", ["Maple!55"]),
    ("the admin password hasn't changed: Zebra!2019", ["Zebra!2019"]),
    ("<@U024BE7LH> creds → `jsmith` / `Pepper2031`", ["Pepper2031"]),
    ("log in as test@example.org with Qwerty!23", ["Qwerty!23"]),
    ("пароль от wifi: zima2020", ["zima2020"]),
    ("κωδικός: zebra99", ["zebra99"]),
    ("ο κωδικός είναι zebra99", ["zebra99"]),
    ("кодът е 482913", ["482913"]),
    ("for grafana: admin / grafana123", ["grafana123"]),
    ("db password changed from oldPass1 to newPass2", ["oldPass1", "newPass2"]),
    ("sue@x.org | Mango77!", ["Mango77!"]),
    ("sue@x.org - Mango77!", ["Mango77!"]),
    ("creds for jenkins: sue / mango77", ["mango77"]),
    ("Jenkins creds:\n- sue / Mango77\n- bob / Pear88", ["Mango77", "Pear88"]),
    ("you can get in with sue / Mango77!", ["Mango77!"]),
    ("use Mango77! for the password", ["Mango77!"]),
    ("pw for the NAS: mango77", ["mango77"]),
    ("pass for prod is mango77", ["mango77"]),
    ("log in with sue and Mango77!", ["Mango77!"]),
    ("I changed the pw to Mango77", ["Mango77"]),
    ("does Mango77! work as the password?", ["Mango77!"]),
    ("κωδικός wifi: mango77", ["mango77"]),
    ("PW lautet mango77", ["mango77"]),
]
STAYS = [
    "admin / operator / viewer2",
    "for grafana: dashboards / panels2",
    "log in as admin with SSO",
    "Use login v2 / login v3",
    "the login page at step2: form3",
    "creds: see the vault",
    "step1:build2",
    "node1:9200",
    "root:1000",
    "the pw for that column is 120px",
    "changed the password policy from v1 to v2",
    "changed it from 4.2.1 to 4.3.0",
    "The password has not changed: see ticket OPS-4821",
    "Login errors:\nstep1:build2\nstep2:build3",
    "Ο κωδικός πρέπει να έχει 8 χαρακτήρες",
    "κωδικός σφάλματος 404",
    "код ошибки 504813",
]


@pytest.mark.parametrize(("text", "secrets"), GOES)
def test_a_secret_is_removed(scrubber: Scrubber, text: str, secrets: list[str]) -> None:
    scrubbed = scrubber.scrub(text).text
    assert [secret for secret in secrets if secret in scrubbed] == []
    assert scrubber.scrub(scrubbed).text == scrubbed


@pytest.mark.parametrize("text", STAYS)
def test_a_text_without_a_secret_is_unchanged(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text).text == text
