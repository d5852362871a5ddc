"""Where secrets stand in scripts, configuration, code and sentences, and what stands in such places and is none."""

import pytest

from assay_scrubber.engine import Scrubber

GONE = "[REDACTED]"
KEY = "q8VX7RM4vVdANDkyM2E0ZGY"
FOUND = [
    ("rabbitmqctl add_user shovel rain_17\n", "rain_17"),
    ("SSHPASS=rainOnSnow7 sshpass -e rsync -a . web:/srv", "rainOnSnow7"),
    ('spawn ssh admin@sw; expect "assword:"; send "rain17;x\\r"; interact', "rain17;x"),
    ("New-Object Net.NetworkCredential('svc_sync','Rain-Snow17')", "Rain-Snow17"),
    ("echo cmFpbi1vbi1zbm93MTc= | base64 -d | sudo -S id", "cmFpbi1vbi1zbm93MTc="),
    ("echo rain17x | vault login -", "rain17x"),
    ("gh secret set API_BODY --body Rain17snow", "Rain17snow"),
    ("pg1.lan:5432:*:replicator:rain17snow", "rain17snow"),
    ("define( 'DB_PASSWORD', 'y)Kp4;vR~w2_' );", "y)Kp4;vR~w2_"),
    ("define('AUTH_KEY',         't`DK%X:>xy|e-Z(BXb/f(Ur`8#~UzUQG-^_Cs');", "DK%X:>xy|e-Z(BXb/f(Ur"),
    ("site\tlogin\tpw\nrobot\tK0391\tRain-sNow-17\n", "Rain-sNow-17"),
    (f"receivers:\n  - routing_key: {KEY}\n", KEY),
    ('198.51.100.4 203.0.113.77 : PSK "17rain.on.Snow"', "17rain.on.Snow"),
    ("local pw <const> = 'Rainlight_8'", "Rainlight_8"),
    ('(def smtp {:host "mx" :pass "ra1n-Snow"})', "ra1n-Snow"),
    ('#define WIFI_PASS "rainOnSnow3"', "rainOnSnow3"),
    (f"wandb.login(key='{KEY}')", KEY),
    (f"Authorization: Klaviyo-API-Key pk_{'3bba5988890267d7484d5294543c16260c'}", "3bba5988890267d7"),
    (f"X-Session-Id: {KEY}", KEY),
    (f"X-Pinpoint-Key: {KEY}", KEY),
    (f"Fastly-Key: {KEY}", KEY),
    (f"Sec-WebSocket-Protocol: bearer, {KEY}", KEY),
    (f"Stripe-Signature: t=1492774577,v1={'733a8a83944058c5' * 4}", "733a8a83944058c5"),
    (f"the session cookie is {KEY}, so", KEY),
    (f".shop.example\tTRUE\t/\tTRUE\t0\tsessionid\t{KEY}\n", KEY),
    (f"here is my token {KEY}x4 again", KEY),
    ("passphrase (hex): 57616c646d6569737465722d426f776c65", "57616c646d6569737465722d426f776c65"),
    ("Le mot de passe du coffre est désormais « Pluie#8h », merci", "Pluie#8h"),
    ("A senha do Wi-Fi da loja é chuva-doce-310, pode passar", "chuva-doce-310"),
    ("Het wachtwoord van de kassa is veranderd in Regen4fels sinds maandag.", "Regen4fels"),
    ("Hasło do panelu: Deszcz%7snieg - zmień", "Deszcz%7snieg"),
    ("Heslo k databázi je teď Dest_snih5, staré nefunguje", "Dest_snih5"),
    ("Пароль от тестового стенда: Dozhd-zima24, логин прежний", "Dozhd-zima24"),
    ("Ο κωδικός πρόσβασης για το VPN είναι Vrohi-hi0ni και λήγει", "Vrohi-hi0ni"),
    ("كلمة المرور الجديدة لحسابك هي Matar@2271 ويرجى تغييرها", "Matar@2271"),
    ("הסיסמה לשרת הגיבוי היא Geshem55!yam תמחק", "Geshem55!yam"),
    ("Prüfnummer (CVV) 419 und Ablauf 08/27", "419"),
    ("код підтвердження прийшов: 88-41-06, введи", "88-41-06"),
    ("Your card pin is 4711 5823", "4711 5823"),
    ("mobileTAN 482911", "482911"),
    ("Use 482911 to complete your registration", "482911"),
    ("Use 4829 to log in", "4829"),
    (
        "https://shop.example/restablecer/76275ed766d3724bab68d526543c57ad8e163fc6",
        "76275ed766d3724bab68d526543c57ad8e163fc6",
    ),
    ("паспорт громадянина України серія ТТ 484451 виданий", "484451"),
    ("여권번호 M428B8930 (발급일)", "M428B8930"),
]
KEPT = [
    "ldapsearch -x -s base -b dc=x2",
    "cargo build -p assay-core2",
    "gh pr create -t fix2 --body text12",
    "gh issue create --title x --body crash12",
    "ansible-playbook site.yml -t web2",
    "snmpwalk -v3 -a SHA -A SHA-256 host",
    "su -p deploy2",
    "sudo -p prompt1 ls",
    "set TOKEN_LIMIT=4096/2",
    "set key user:1234567890ab",
    "echo v1.2 | docker login",
    "GPIO pin = 1234",
    "pin: 1024 connections",
    "the pin is 5000 mV",
    "tan = 45000",
    "5000 is the error code",
    "Use 4096 to complete the table",
    "Enter 10000 to continue",
    'mysqli("localhost","root","utf8mb4")',
    "https://x.example/reset/2026-01-01-release-notes",
    "https://x.example/invite/team-alpha-2026-q1",
    "пароль SHA256",
    "auth = HTTPBasicAuth2",
    '"Resource": "arn:aws:rds:*:*:db:autoscaled-reader*"',
    "wachtwoord is opgeslagen in base64url",
    "password policy: 12chars",
    "password manager: KeePass2",
    "password reset for user: user42@",
    "The password field is named passwd2 in the schema",
    "Пароль от сервера prod-db2 лежит в хранилище",
    "Пароль для учётной записи admin1 сброшен",
    'password = sha256("salt2" + pw)',
    "routing_key=user.42.events",
    '"password": {"answer": "at least 12 characters"}',
    "X-Idempotency-Key: 8761881b1bade370fdc3ba05a9b611ad",
    "X-Session-Id: 123e4567-e89b-12d3-a456-426614174000",
    "Sec-WebSocket-Protocol: v12.stomp, v11.stomp",
    "the cookie policy is documented-in-section-4.2.1",
    "x.example\tTRUE\t/\tFALSE\t0\ttheme\tdark-mode-2024",
    "Cookie: theme=dark-mode-2024",
    "Authorization: optional since version 2.4.1",
    "token JwtBearerTokenValidatorV2Impl",
    "key AWSServiceRoleForElasticLoadBalancingV2",
    "row[x + xpos - pw] = char2",
    'assert julia_code(2*pw) == "2 * ((x < 1) ? (x) : (x .^ 2))"',
    "64015 | qmailp | qmail pw\n64020 | asterisk | asterisk\n64035 | hacluster | heartbeat2\n",
    '<a href="#all_x509checkprivatekeyprivatekey"><code>x509.checkPrivateKey(privateKey)</code></a>',
    "#define PASS_LENGTH 12",
    "the password for the job is stored in the vault",
]


@pytest.mark.parametrize(("text", "secret"), FOUND)
def test_it_is_found_there(scrubber: Scrubber, text: str, secret: str) -> None:
    scrubbed = scrubber.scrub(text).text
    assert secret not in scrubbed
    assert GONE in scrubbed
    assert scrubber.scrub(scrubbed).text == scrubbed


@pytest.mark.parametrize("text", KEPT)
def test_and_nothing_else_is(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text).text == text
