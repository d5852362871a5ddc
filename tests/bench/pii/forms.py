"""Forms in which secrets and personal data stand in logs, prompts, configuration and code: is the value gone afterwards?

Written from public descriptions (RFCs, manuals, documentation of formats), not from the rules. A form belongs to one of two halves by its
hash, fixed before any rule was written for it: rules are written while looking at the half `seen`; `held` is only counted.

    python -m tests.bench.pii.forms          # recall of each group, both halves, and the forms of `seen` that are missed
"""

import base64
import hashlib
import random
import string
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = "forms-2026-11"
#: Where the value goes.
PLACE = "§"
TRIES = 5
_ALNUM = string.ascii_letters + string.digits


def _chars(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def _token(rng: random.Random) -> str:
    """What a program makes: hexadecimal, base64, or letters and digits."""
    made = (
        _chars(rng, "0123456789abcdef", rng.choice([32, 40, 64])),
        base64.b64encode(rng.randbytes(24)).decode().rstrip("="),
        _chars(rng, _ALNUM, rng.randint(20, 40)),
    )
    return rng.choice(made)


def _password(rng: random.Random) -> str:
    """What a person makes up."""
    words = ["Sommer", "tiger", "River", "kaffee", "Lisboa", "guitar", "Winter", "dragon"]
    return rng.choice(words) + rng.choice("!#$-_.") + str(rng.randint(10, 9999)) + rng.choice(["x", "Q", "", "zz"])


def _letters(rng: random.Random) -> str:
    """A password of letters only."""
    return _chars(rng, string.ascii_lowercase, rng.randint(9, 13))


def _code(rng: random.Random) -> str:
    return str(rng.randint(100_000, 999_999))


def _pin(rng: random.Random) -> str:
    return f"{rng.randint(0, 9999):04}"


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "token": _token,
    "password": _password,
    "letters": _letters,
    "code": _code,
    "pin": _pin,
}

#: By group, and by kind of value: the forms.
SECRETS: dict[str, dict[str, tuple[str, ...]]] = {
    "cookies and headers": {
        "token": (
            "Cookie: JSESSIONID=§; Path=/app; Secure",
            "Cookie: theme=dark; PHPSESSID=§; lang=de",
            "Set-Cookie: connect.sid=§; Path=/; HttpOnly",
            "Set-Cookie: _session_id=§; expires=Tue, 24 Nov 2026 10:00:00 GMT",
            "cookie: sessionid=§; csrftoken=abc",
            "set-cookie: ASP.NET_SessionId=§; path=/; HttpOnly; SameSite=Lax",
            "set-cookie: laravel_session=§; Max-Age=7200",
            "Authorization: Token §",
            "Authorization: ApiKey §",
            "Authorization: SSWS §",
            "Authorization: §",
            "Proxy-Authorization: Basic §",
            "X-Auth-Token: §",
            "X-Vault-Token: §",
            "X-Amz-Security-Token: §",
            "x-csrf-token: §",
            "X-Shopify-Access-Token: §",
            "PRIVATE-TOKEN: §",
            "Ocp-Apim-Subscription-Key: §",
            'headers = {"x-api-key": "§", "accept": "*/*"}',
            "{'Authorization': 'Token §'}",
            '("authorization", "ApiKey §")',
            '{"name": "Authorization", "value": "JWT §"}',
            "> Authorization: GoogleLogin auth=§",
            'Authorization: Digest username="ana", realm="r", nonce="n1", uri="/", response="§"',
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=§",
            "X-Hub-Signature-256: sha256=§",
        ),
    },
    "command lines": {
        "password": (
            "curl -u ana:§ https://example.org/api",
            "curl --user 'deploy:§' -T file ftp://example.org/",
            "mysql -u root -p§ shop",
            "mysqldump --password=§ --all-databases",
            "mysql --user=root --password '§'",
            "PGPASSWORD=§ psql -h db -U app",
            "sshpass -p § ssh ops@example.org",
            "sshpass -p '§' scp a b:",
            "echo '§' | sudo -S apt-get update",
            "echo § | docker login -u ci --password-stdin registry.example.org",
            "docker login -u ci -p § registry.example.org",
            "redis-cli -h cache -a § ping",
            "redis-cli --user app --pass § info",
            "mongo -u admin -p § --authenticationDatabase admin",
            "mongosh --username admin --password § host",
            "wget --user=ana --password=§ https://example.org/f",
            "net use Z: \\\\server\\share § /user:ana",
            "ldapsearch -D cn=admin,dc=example -w § -b dc=example",
            "smbclient //host/share -U 'ana%§'",
            "htpasswd -b .htpasswd ana §",
            "openssl enc -aes-256-cbc -k § -in a -out b",
            "openssl pkcs12 -in a.p12 -passin pass:§",
            "7z x -p§ backup.7z",
            "unzip -P § backup.zip",
            "gpg --batch --passphrase § -d a.gpg",
            "kinit ana <<< '§'",
            "sqlcmd -S host -U sa -P §",
            "PASSWORD=§ ./deploy.sh",
        ),
        "token": (
            "vault login §",
            "gh auth login --with-token <<< §",
            "aws configure set aws_secret_access_key §",
            "npm config set //registry.example.org/:_authToken=§",
            "export GH_TOKEN=§",
            "setx API_SECRET §",
            "$env:API_TOKEN = '§'",
            "kubectl create secret generic db --from-literal=token=§",
            "helm upgrade app . --set auth.token=§",
            "docker run -e SECRET_TOKEN=§ app",
        ),
    },
    "configuration": {
        "password": (
            "machine example.org login ana password §",
            "spring.datasource.password=§",
            "db.password = §",
            "  password: §",
            '  password: "§"',
            "password: |\n  §\n",
            "<password>§</password>",
            '<add key="DbPassword" value="§"/>',
            '<property name="password" value="§"/>',
            '<input type="password" name="pw" value="§">',
            '{"name": "DB_PASSWORD", "value": "§"}',
            "- name: DB_PASSWORD\n  value: §",
            "define('DB_PASSWORD', '§');",
            "$db['default']['password'] = '§';",
            'variable "db_password" {\n  default = "§"\n}',
            'password = "§"',
            "requirepass §",
            "masterauth §",
            "user default on >§ ~* +@all",
            "host=db port=5432 user=app password=§ sslmode=require",
            "Server=db;Database=shop;User Id=app;Password=§;",
            "Data Source=db;Initial Catalog=s;User ID=sa;Pwd=§",
            "ansible_become_pass: §",
            "smtp_pass=§",
            "MAIL_PASSWORD=§",
            'psk="§"',
            "wpa_passphrase=§",
            "user,password\nana,§\n",
            "| user | password |\n|---|---|\n| ana | § |",
            '<string name="keystore_password">§</string>',
        ),
        "token": (
            '{"auths": {"registry.example.org": {"auth": "§"}}}',
            "//registry.npmjs.org/:_authToken=§",
            "apiVersion: v1\nkind: Secret\ndata:\n  token: §\n",
            "SECRET_KEY_BASE=§",
            "secret_key_base: §",
            "aws_secret_access_key = §",
            "[github]\n  token = §",
            'client_secret: "§"',
            "JWT_SECRET=§",
            "app.signing-key=§",
            '"encryptionKey": "§"',
            "webhook_secret = §",
        ),
    },
    "code, SQL and prose": {
        "password": (
            "CREATE USER app IDENTIFIED BY '§';",
            "ALTER USER app WITH PASSWORD '§';",
            "ALTER ROLE app PASSWORD '§'",
            "GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY \"§\"",
            "INSERT INTO users (name, password) VALUES ('ana', '§')",
            "UPDATE users SET password = '§' WHERE id = 3",
            "SET PASSWORD FOR 'app'@'%' = PASSWORD('§')",
            'conn = connect(user="app", password="§")',
            "login(username='ana', passwd='§')",
            "const dbPass = '§';",
            'String password = "§";',
            "my password is §",
            "The password for the guest wifi is §.",
            "user: ana pass: §",
            "username ana, password §",
            "Passwort: §",
            "mein Passwort lautet §",
            "le mot de passe est §",
            "mot de passe : §",
            "contraseña: §",
            "la contraseña es §",
            "a senha é §",
            "senha: §",
            "la password è §",
            "wachtwoord: §",
            "hasło: §",
            "lösenord: §",
            "şifre: §",
            "пароль: §",
            "мой пароль §",
            "κωδικός πρόσβασης: §",
            "كلمة المرور: §",
            "סיסמה: §",
            "密码：§",
            "密码是§",
            "パスワード：§",
            "パスワードは§です",
            "비밀번호: §",
            "รหัสผ่าน: §",
            "पासवर्ड: §",
            "mật khẩu: §",
        ),
        "letters": (
            '{"username": "ana", "password": "§"}',
            "username=ana&password=§&remember=1",
            "POST /login user=ana&pwd=§",
            "password: §",
        ),
        "code": (
            "Your verification code is §",
            "§ is your verification code",
            "G-§ is your Google verification code.",
            "Use § to log in. Do not share it.",
            "OTP: §",
            "one-time code § expires in 5 minutes",
            "Your 2FA code: §",
            "Ihr Bestätigungscode lautet §",
            "Votre code de vérification est §",
            "Tu código de verificación es §",
            "验证码：§",
            "code de sécurité : §",
        ),
        "pin": ("PIN: §", "my card's pin is §", "the PIN is §"),
    },
    "URLs": {
        "token": (
            "https://example.org/reset?token=§",
            "https://example.org/password/reset/§",
            "https://example.org/cb?code=§&state=xyz",
            "https://example.org/cb#access_token=§&token_type=bearer",
            "https://bucket.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=§",
            "https://acct.blob.core.windows.net/c/b?sv=2024&sig=§",
            "https://storage.googleapis.com/b/o?GoogleAccessId=a&Signature=§",
            "https://example.org/api?api_key=§",
            "https://example.org/api?apikey=§&q=1",
            "https://example.org/magic-link/§",
            "https://hooks.example.org/services/T000/B000/§",
            "wss://example.org/socket?auth=§",
            "https://example.org/invite?invitation_token=§",
            "https://example.org/verify?t=1&confirmation_token=§",
        ),
        "password": (
            "https://ana:§@example.org/",
            "ftp://ana:§@example.org/pub",
            "postgres://app:§@db:5432/shop",
            "amqp://guest:§@mq/",
            "https://example.org/login?user=ana&password=§",
        ),
    },
}


@dataclass(frozen=True, slots=True)
class Form:
    """One form, and the kind of value that stands in it."""

    group: str
    kind: str
    text: str

    @property
    def held(self) -> bool:
        """Whether nobody looks at it while rules are written."""
        return hashlib.sha256(f"{SEED}{self.text}".encode()).digest()[0] % 2 == 1

    def filled(self) -> Iterator[tuple[str, str]]:
        """Some texts of this form, each with its value; the same every time."""
        rng = random.Random(f"{SEED}{self.text}")
        for _ in range(TRIES):
            value = MAKERS[self.kind](rng)
            yield self.text.replace(PLACE, value), value


def forms() -> list[Form]:
    """All forms, in the order of this file."""
    return [
        Form(group, kind, text)
        for group, kinds in SECRETS.items()
        for kind, texts in kinds.items()
        for text in texts
        if text
    ]


def found(scrub: Callable[[str], str], form: Form) -> bool:
    """Whether every value of the form is gone: none of four characters of it stand together any more."""
    for text, value in form.filled():
        left = scrub(text)
        if any(
            value[place : place + 4] in left.replace(form.text.replace(PLACE, ""), "")
            for place in range(len(value) - 3)
        ):
            return False
    return True


def main() -> None:
    """Print how many forms of each group are found."""
    from assay_scrubber.engine import Scrubber

    scrubber = Scrubber()
    tally: defaultdict[tuple[str, bool], list[bool]] = defaultdict(list)
    missed = []
    for form in forms():
        ok = found(lambda text: scrubber.scrub(text).text, form)
        tally[form.group, form.held].append(ok)
        if not ok and not form.held:
            missed.append(form)
    for group in SECRETS:
        halves = [
            f"{name} {sum(tally[group, held])}/{len(tally[group, held])}"
            for name, held in (("seen", False), ("held", True))
        ]
        sys.stdout.write(f"{group:24} {'   '.join(halves)}\n")
    for form in missed:
        sys.stdout.write(f"missed: {form.group}, {form.kind}: {form.text!r}\n")


if __name__ == "__main__":
    main()
