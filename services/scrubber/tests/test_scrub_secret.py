"""Passwords and keys after the word that names them: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

from assay_scrubber.engine import Scrubber

FOUND = [
    # text, found, output
    ("password=hunter2", ["hunter2"], "password=[REDACTED]"),
    ("db_password: 's3cr3t pass'", ["s3cr3t pass"], "db_password: '[REDACTED]'"),
    ("my password is Tr0ub4dor&3", ["Tr0ub4dor&3"], "my password is [REDACTED]"),
    ("mysql --password hunter2x -u root", ["hunter2x"], "mysql --password [REDACTED] -u root"),
    ("Server=db;Pwd=abc123;Database=x", ["abc123"], "Server=db;Pwd=[REDACTED];Database=x"),
    ("<password>hunter2</password>", ["hunter2"], "<password>[REDACTED]</password>"),
    ('{"client_secret": "GHd8f7HGd87fhGFD8f7"}', ["GHd8f7HGd87fhGFD8f7"], '{"client_secret": "[REDACTED]"}'),
    ('api_key: "9f8e7d6c5b4a39281706"', ["9f8e7d6c5b4a39281706"], 'api_key: "[REDACTED]"'),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"],
        "aws_secret_access_key = [REDACTED]",
    ),
    ("?access_token=a1B2c3D4e5F6g7&x=1", ["a1B2c3D4e5F6g7"], "?access_token=[REDACTED]&x=1"),
    (
        "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ["QWxhZGRpbjpvcGVuIHNlc2FtZQ=="],
        "Authorization: Basic [REDACTED]",
    ),
    ('{\\"password\\":\\"hunter2\\"}', ["hunter2"], '{\\"password\\":\\"[REDACTED]\\"}'),
    # in prose
    ("the signing key is aB3dE6gH9jK2mN5p", ["aB3dE6gH9jK2mN5p"], "the signing key is [REDACTED]"),
    ("your token is now aB3dE6gH9jK2mN5p.", ["aB3dE6gH9jK2mN5p"], "your token is now [REDACTED]."),
    ("The password for the portal is hunter2x!", ["hunter2x!"], "The password for the portal is [REDACTED]"),
    ("the password was changed to Tr0ub4dor&3", ["Tr0ub4dor&3"], "the password was changed to [REDACTED]"),
    # in a table, Markdown, HTML, behind an option
    ("| api_key | aB3dE6gH9jK2mN5p |", ["aB3dE6gH9jK2mN5p"], "| api_key | [REDACTED] |"),
    ("| password | aB3dE6gH9jK2mN5p |", ["aB3dE6gH9jK2mN5p"], "| password | [REDACTED] |"),
    ("**API key:** aB3dE6gH9jK2mN5p", ["aB3dE6gH9jK2mN5p"], "**API key:** [REDACTED]"),
    ("<td>password</td><td>hunter2x</td>", ["hunter2x"], "<td>password</td><td>[REDACTED]</td>"),
    ("Use client_secret `aB3dE6gH9jK2mN5p` here", ["aB3dE6gH9jK2mN5p"], "Use client_secret `[REDACTED]` here"),
    ("tool --token aB3dE6gH9jK2mN5p -v", ["aB3dE6gH9jK2mN5p"], "tool --token [REDACTED] -v"),
    ("access_token -> aB3dE6gH9jK2mN5p", ["aB3dE6gH9jK2mN5p"], "access_token -> [REDACTED]"),
    # marks, quotes, brackets, letters only
    ("client_secret: '#aB3dE6gH9jK2mN5p'", ["#aB3dE6gH9jK2mN5p"], "client_secret: '[REDACTED]'"),
    ('password: "aB\'3dE6gH"', ["aB'3dE6gH"], 'password: "[REDACTED]"'),
    ("SECRET_KEY=aB(3dE6*gH9!k", ["aB(3dE6*gH9!k"], "SECRET_KEY=[REDACTED]"),
    ("secret_key = 'QwErTyUiOpLkJhGfDsAz' # 1", ["QwErTyUiOpLkJhGfDsAz"], "secret_key = '[REDACTED]' # 1"),
    ("API_KEY=KJHGFDSAQW3RTYBL | next", ["KJHGFDSAQW3RTYBL"], "API_KEY=[REDACTED] | next"),
    ("api_key: WIZLE14SVdsYk+q6047jNvyf", ["WIZLE14SVdsYk+q6047jNvyf"], "api_key: [REDACTED]"),
    # JSON in JSON stays JSON
    (
        r'{"log": "{\"text\": \"secret_key: aB3dE6gH9jK2mN5p\"}"}',
        ["aB3dE6gH9jK2mN5p"],
        r'{"log": "{\"text\": \"secret_key: [REDACTED]\"}"}',
    ),
    # other languages
    ("contraseña=hunter2x", ["hunter2x"], "contraseña=[REDACTED]"),
    ("mot de passe : hunter2x", ["hunter2x"], "mot de passe : [REDACTED]"),
    ("wachtwoord: hunter2x", ["hunter2x"], "wachtwoord: [REDACTED]"),
]
KEPT = [
    'PASS: suite.base/align-c++.exp: print alignof("a_char")',
    "P11_FOR_OBJECT_ON_TOKEN | P11_KIT_URI_FOR_MODULE",
    "#define __NR_request_key (__X32_SYSCALL_BIT + 249)",
    "const PASS8 = 0x08000000;",
    "printf(&quot;Password is correct.&quot;);",
    'password = ":****"',
    "password = utf8_to_utf16_dup(v);",
    "BASIC 000000000:",
    "basic abcdefghi",
    "password = get_password()",
    "password: str = None",
    "def login(password, user):",
    "token: str",
    "max_tokens=4096",
    "the password is required",
    "password=${PASSWORD}",
    "password=os.environ['DB_PASSWORD']",
    "self.password = password",
    "token = token_urlsafe(16)",
    "key = 'abc123'",
    "sort_key: created_at",
    "bypass=true1",
    "primary_key=id2",
    "passed: 12 of 14",
    "basic authentication2",
    "secret santa: 24 people",
    "password: ********",
    "token==17.3.61.dev8421",
    "token==v9.24.29+5e3a1f20",
    "token@v3.14.9-rc.4",
    "the key is described in section 12 of the manual",
    "the password is SHA256-hashed",
    "token = getAuthTokenFromServer2",
    "password (min8chars)",
    "| password | VARCHAR2 |",
    "the secret to success: 24 hours of practice",
    "password=f(x1)+g",
    'password="%(password)s2"',
    "key - value pairs of 12 rows",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_secret_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("secret", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_secret_stays(check: Callable[..., None], text: str) -> None:
    check("secret", text, [], text)


@pytest.mark.parametrize("length", range(1, 24))
def test_a_word_of_any_length_after_basic_is_no_reason_to_fail(scrubber: Scrubber, length: int) -> None:
    text = "Basic " + "abcdefghijklmnopqrstuvw"[:length]
    assert scrubber.scrub(text).text == text
