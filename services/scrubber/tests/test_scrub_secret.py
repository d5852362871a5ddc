"""Passwords and keys after the word that names them: what is found, what the text becomes, what is left alone."""

import json
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
    # headers, cookies, session ids
    ("Authorization: ApiKey aB3dE6gH9jK2mN5p", ["aB3dE6gH9jK2mN5p"], "Authorization: ApiKey [REDACTED]"),
    ("{'Authorization': 'Token aB3dE6gH9jK2mN5p'}", ["aB3dE6gH9jK2mN5p"], "{'Authorization': 'Token [REDACTED]'}"),
    ('("authorization", "SSWS aB3dE6gH9jK2mN5p")', ["aB3dE6gH9jK2mN5p"], '("authorization", "SSWS [REDACTED]")'),
    (
        'Authorization: Digest username="a", response="6629fae49393a05397450978507c4ef1"',
        ['username="a", response="6629fae49393a05397450978507c4ef1'],
        'Authorization: Digest [REDACTED]"',
    ),
    (
        "Cookie: theme=dark; JSESSIONID=aB3dE6gH9jK2mN5p; n=1",
        ["aB3dE6gH9jK2mN5p"],
        "Cookie: theme=dark; JSESSIONID=[REDACTED]; n=1",
    ),
    ("Set-Cookie: sid=aB3dE6gH9jK2; Path=/", ["aB3dE6gH9jK2"], "Set-Cookie: sid=[REDACTED]; Path=/"),
    (
        "goto /x;jsessionid=1A530637289A03B07199A44E8D531427",
        ["1A530637289A03B07199A44E8D531427"],
        "goto /x;jsessionid=[REDACTED]",
    ),
    (
        "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a",
        ["757107ea0eb2509fc211221cce984b8a"],
        "X-Hub-Signature-256: sha256=[REDACTED]",
    ),
    # command lines
    ("curl -u ana:rain-17x https://example.org", ["rain-17x"], "curl -u ana:[REDACTED] https://example.org"),
    ("mysql -u root -prain17 shop", ["rain17"], "mysql -u root -p[REDACTED] shop"),
    ("sshpass -p 'rain 17' ssh host", ["rain 17"], "sshpass -p '[REDACTED]' ssh host"),
    ("echo rain17 | sudo -S true", ["rain17"], "echo [REDACTED] | sudo -S true"),
    ("redis-cli -h cache -a rain17 ping", ["rain17"], "redis-cli -h cache -a [REDACTED] ping"),
    ("docker login -u ci -p rain17 example.org", ["rain17"], "docker login -u ci -p [REDACTED] example.org"),
    ("openssl rsa -in k -passin pass:rain17", ["rain17"], "openssl rsa -in k -passin pass:[REDACTED]"),
    # configuration: pairs of name and value, blocks, columns
    ('<add key="DbPassword" value="rain17"/>', ["rain17"], '<add key="DbPassword" value="[REDACTED]"/>'),
    ("- name: DB_PASSWORD\n  value: rain17", ["rain17"], "- name: DB_PASSWORD\n  value: [REDACTED]"),
    ("password: |\n  rain_17\n", ["rain_17"], "password: |\n  [REDACTED]\n"),
    (
        "user,password\nana,rain17\nbob,snow18\n",
        ["rain17", "snow18"],
        "user,password\nana,[REDACTED]\nbob,[REDACTED]\n",
    ),
    (
        "| user | password |\n|---|---|\n| ana | rain17 |",
        ["rain17"],
        "| user | password |\n|---|---|\n| ana | [REDACTED] |",
    ),
    ("define('DB_PASSWORD', 'rain17');", ["rain17"], "define('DB_PASSWORD', '[REDACTED]');"),
    ("MAIL_PASSWORD=rain_17", ["rain_17"], "MAIL_PASSWORD=[REDACTED]"),
    ('{"password": "sunflower"}', ["sunflower"], '{"password": "[REDACTED]"}'),
    ("user=ana&password=sunflower&x=1", ["sunflower"], "user=ana&password=[REDACTED]&x=1"),
    # SQL
    ("CREATE USER a IDENTIFIED BY 'sunflower'", ["sunflower"], "CREATE USER a IDENTIFIED BY '[REDACTED]'"),
    (
        "INSERT INTO u (name, password) VALUES ('ana', 'rain17')",
        ["rain17"],
        "INSERT INTO u (name, password) VALUES ('ana', '[REDACTED]')",
    ),
    # sentences, other languages and scripts
    ("mein Passwort lautet rain-17x", ["rain-17x"], "mein Passwort lautet [REDACTED]"),
    ("мой пароль rain17", ["rain17"], "мой пароль [REDACTED]"),
    ("密码是rain17", ["rain17"], "密码是[REDACTED]"),
    ("パスワードはrain17です", ["rain17"], "パスワードは[REDACTED]です"),
    # codes
    ("Your verification code is 381924", ["381924"], "Your verification code is [REDACTED]"),
    ("381924 is your login code", ["381924"], "[REDACTED] is your login code"),
    ("Votre code de sécurité est 381 924", ["381 924"], "Votre code de sécurité est [REDACTED]"),
    ("验证码：381924", ["381924"], "验证码：[REDACTED]"),
    ("the PIN is 4711", ["4711"], "the PIN is [REDACTED]"),
    ("CVV: 123", ["123"], "CVV: [REDACTED]"),
    ('{"cvc": "417"}', ["417"], '{"cvc": "[REDACTED]"}'),
    ("card[cvv]=9921", ["9921"], "card[cvv]=[REDACTED]"),
    # addresses
    ("https://example.org/reset/aB3dE6gH9jK2mN5p", ["aB3dE6gH9jK2mN5p"], "https://example.org/reset/[REDACTED]"),
    (
        "https://example.org/cb?code=aB3dE6gH9jK2mN5p&state=x",
        ["aB3dE6gH9jK2mN5p"],
        "https://example.org/cb?code=[REDACTED]&state=x",
    ),
]
KEPT = [
    "Authorization: required",
    "authorization = base64.decodebytes(authorization)",
    "Cookie: theme=dark; lang=de",
    "cookies are small files",
    "docker run -p 8080:80 app",
    "ssh -l ana -p 2222 host",
    "mysql -u root -p shop",
    'curl -u "$USER:$PASS" https://example.org',
    "grep -a pattern file1",
    "echo done7 | tee log",
    "next_page_token=CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA",
    "https://example.com/v1?access_token=ACCESS_TOKEN",
    "API_KEY=YOUR_API_KEY",
    "DB_PASSWORD=%DB_PASSWORD%",
    "user,password_changed\nana,2024-01-02\n",
    "error code 504813",
    "zip code 12345",
    "cvv required in 2 forms",
    "cvc 1.7.3",
    "cvv 12345",
    "the code is broken",
    "pin 13 is high",
    "пароль должен содержать 12 символов",
    "密码长度至少为 8 位",
    "https://example.org/reset/password",
    "f = ('password', 'email')",
    "INSERT INTO t (id, name) VALUES (1, 'rain17')",
    "https://example.org/?code=200&state=x",
    "username and password are both optional",
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


@pytest.mark.parametrize(
    "text", ["мой пароль: Hunter22!", "电话 13812345678", "паспорт 4509 123456", "код подтверждения 482913"]
)
def test_words_of_other_scripts_announce_where_json_writes_them_in_ascii(text: str) -> None:
    scrubber = Scrubber()
    once = json.dumps({"text": text})
    for written in (once, json.dumps(once)):
        left = scrubber.scrub(written).text
        assert left != written
        assert text.rpartition(" ")[2] not in left
        assert isinstance(json.loads(left), dict | str)


@pytest.mark.parametrize(
    "written", ['{"пароль": "hunter2!x"}', json.dumps({"пароль": "hunter2!x"}), "{'密码': 'hunter2!x'}"]
)
def test_a_key_of_another_script_announces_in_text(written: str) -> None:
    assert "hunter2" not in Scrubber().scrub(written).text


@pytest.mark.parametrize("key", ["пароль", "密码", "パスワード", "токен", "password"])
@pytest.mark.parametrize("rest", ['"login":"ana1"', '"id":"aB3dE6gH9jK2mN5"'])
def test_an_empty_value_has_nothing_to_remove(key: str, rest: str) -> None:
    written = '{"%s":"",%s}' % (key, rest)  # noqa: UP031  # full of braces
    assert Scrubber().scrub(written).text == written


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("curl -u 'ana:rain17 on snow' h", "curl -u 'ana:[REDACTED]' h"),
        ("curl -u ana:'rain17on' h", "curl -u ana:'[REDACTED]' h"),
        (r'{"cmd":"curl -u \"ana:rain17on\" h"}', r'{"cmd":"curl -u \"ana:[REDACTED]\" h"}'),
        (r"password = 'it\'s17rain' # x", "password = '[REDACTED]' # x"),
        ("CREATE USER a IDENTIFIED BY 'it''s17rain';", "CREATE USER a IDENTIFIED BY '[REDACTED]';"),
        ("password: |\n  rain17on\n  snow\nuser: ana", "password: |\n  [REDACTED]\nuser: ana"),
        ("<password>ab&lt;rain17</password>", "<password>[REDACTED]</password>"),
        ("<password><![CDATA[ab]rain17]]></password>", "<password><![CDATA[[REDACTED]]]></password>"),
        ("<password>rain17;on,snow</password>", "<password>[REDACTED]</password>"),
        ('passwd := []byte("Rain17.Snow")', 'passwd := []byte("[REDACTED]")'),
        ("SET user_pass = MD5('Rain$17') WHERE id = 1", "SET user_pass = MD5('[REDACTED]') WHERE id = 1"),
    ],
)
def test_a_value_goes_whole(scrubber: Scrubber, text: str, scrubbed: str) -> None:
    assert scrubber.scrub(text).text == scrubbed
