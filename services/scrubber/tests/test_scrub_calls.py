"""Secrets as literals in calls, defaults and addresses of code, and what only looks so."""

import pytest

from assay_scrubber.engine import Scrubber

GOES = [
    ('string signed = token.SignedString([]byte("u0oyjTz8dnmT5Wx0VyD2ifY9"))', ["u0oyjTz8dnmT5Wx0VyD2ifY9"]),
    ('Algorithm alg = Algorithm.HMAC256("iwtleqsv40618nb3qa5m6t2u");', ["iwtleqsv40618nb3qa5m6t2u"]),
    (
        'var key = new SymmetricSecurityKey(Encoding.UTF8.GetBytes("ccwqykw7ljv4F2NpMkq1jTlmiVyNDvHY"));',
        ["ccwqykw7ljv4F2NpMkq1jTlmiVyNDvHY"],
    ),
    (
        'Keys.hmacShaKeyFor("RUefPyQFKANNEvQrxpXoVlOKnpzbqHSSmK7FV3fr".getBytes())',
        ["RUefPyQFKANNEvQrxpXoVlOKnpzbqHSSmK7FV3fr"],
    ),
    ('mac := hmac.New(sha256.New, []byte("HTTKgGdjcO9c5ynqyUzf"))', ["HTTKgGdjcO9c5ynqyUzf"]),
    ('headers.setBearerAuth("jpQpO7rLkEcdzv72yDqOT30iMxL0zb8Hgqrv");', ["jpQpO7rLkEcdzv72yDqOT30iMxL0zb8Hgqrv"]),
    ('f = Fernet("EDEeOptoku7YoiAODBXx7q+HWn26ta1EEY4dhay9ALk=")', ["EDEeOptoku7YoiAODBXx7q+HWn26ta1EEY4dhay9ALk="]),
    (
        'reqwest::Client::new().get(u).bearer_auth("90f57f6ab2d0b23d6f620da225e0423f144639ca")',
        ["90f57f6ab2d0b23d6f620da225e0423f144639ca"],
    ),
    ('http.bearer("58aw0dfun5ndijnfi9d2jdfc7khq24c4")', ["58aw0dfun5ndijnfi9d2jdfc7khq24c4"]),
    ('dsn := "shop:Violet!77@tcp(db:3306)/shop?parseTime=true"', ["Violet!77"]),
    ('gorm.Open(mysql.Open("app:s3cretpw@unix(/run/mysqld.sock)/app"))', ["s3cretpw"]),
    ("DSN=etl:p@ss/w0rd@tcp(10.0.0.9:3306)/dw", ["p@ss/w0rd"]),
    (
        "define('SECURE_AUTH_SALT', 'x7$kQ|9 f!Wm~Pz3@Lr^8&Tb*Hn5(Vc)2_Yd+Jg=6Ks-4Qx');",
        ["x7$kQ|9 f!Wm~Pz3@Lr^8&Tb*Hn5(Vc)2_Yd+Jg=6Ks-4Qx"],
    ),
    (
        'define("NONCE_SALT", "q#V8!m2@Zx^7&Lp*4(Rt)9_Kw+1=Ns-6Bd~3|Hf%5Jg");',
        ["q#V8!m2@Zx^7&Lp*4(Rt)9_Kw+1=Ns-6Bd~3|Hf%5Jg"],
    ),
    (
        'new TwilioRestClient("AC9f937754b19638aaa06d3abe9054639b", "e83bbf93414fd2b95028effaabd79e05")',
        ["e83bbf93414fd2b95028effaabd79e05"],
    ),
    ('with FTP_TLS("files.example.net", "mirror", "Yak-90210") as f:', ["Yak-90210"]),
    ('ftplib.FTP("h", "mirror", "yak90210")', ["yak90210"]),
    ('auth := smtp.PlainAuth("", user, "Yak-90210", host)', ["Yak-90210"]),
    ('smtp.CRAMMD5Auth("robot", "Yak-90210")', ["Yak-90210"]),
    ("DB_PASSWORD ?= yakyak90210", ["yakyak90210"]),
    ('config[:password] ||= "Yak!90210"', ["Yak!90210"]),
    ('options.password ??= "Yak!90210";', ["Yak!90210"]),
    ("API_TOKEN ?= LWU9TRNFBvS22zq2TTo8kZfs5j9tkggj", ["LWU9TRNFBvS22zq2TTo8kZfs5j9tkggj"]),
    ('c.setopt(c.USERPWD, "ops:Yak!90210")', ["Yak!90210"]),
    ('curl_easy_setopt(curl, CURLOPT_USERPWD, "ops:yak90210");', ["yak90210"]),
    ('key = os.getenv("MAPBOX_KEY", "upcvhtehgfjcfdg4kr4vp94flcl1jwnt")', ["upcvhtehgfjcfdg4kr4vp94flcl1jwnt"]),
    ('ENV.fetch("MAILER_KEY", "btMMNqt3xphskZUVPJScDGYx")', ["btMMNqt3xphskZUVPJScDGYx"]),
    ('const k = process.env.STRIPE_KEY || "cVcmyxWGH3wmwYC1CriMhgaEITWKrk";', ["cVcmyxWGH3wmwYC1CriMhgaEITWKrk"]),
    ('let t = process.env["BOT_TOKEN"] ?? "rrU705URn7xfckIApYOwbrhG5vbUnv"', ["rrU705URn7xfckIApYOwbrhG5vbUnv"]),
    ('password = os.environ.get("PGPASSWORD") or "delta!moon7"', ["delta!moon7"]),
    ('const pw = process.env.DB_PASSWORD || "delta!moon7"', ["delta!moon7"]),
    (
        'secret := getEnv("HMAC_KEY", "54b720253d9fdc2a001193dcd30827591680988f13416ad5")',
        ["54b720253d9fdc2a001193dcd30827591680988f13416ad5"],
    ),
    ("'key' => env('PUSHER_KEY', 'fiymavp4xzoznuwdm74l'),", ["fiymavp4xzoznuwdm74l"]),
    ('env::var("API_SECRET").unwrap_or_else(|_| "I6Nk3qPdgJfXV9J2qeEMoe1X".to_string())', ["I6Nk3qPdgJfXV9J2qeEMoe1X"]),
    ('let token = option.unwrap_or("vwkNuWXBns0pGLTZ6dQmHxQu")', ["vwkNuWXBns0pGLTZ6dQmHxQu"]),
    ('config.set("mail.sendgrid.key", "RfhHG4mKE9FYnQIFJdJyjQ4K8rI7Ly3r")', ["RfhHG4mKE9FYnQIFJdJyjQ4K8rI7Ly3r"]),
    ('app.settings.put("maps.key", "yWtcq8Jt7YMPxkSAXhh4fmaiXTzO");', ["yWtcq8Jt7YMPxkSAXhh4fmaiXTzO"]),
    ("Auth => ['robot', 'Heron!83']", ["Heron!83"]),
    (
        "SECRET = base64.b64decode('IJ0iXLiez0aE4EGgBhpEhNcu/z9awjNaN7RiB1zTKtA=')",
        ["IJ0iXLiez0aE4EGgBhpEhNcu/z9awjNaN7RiB1zTKtA="],
    ),
    (
        'signing_key = bytearray.fromhex("01679b8190dd78e3be66a92e21d32bd609eb0447a8af58b068bb00946098e927")',
        ["01679b8190dd78e3be66a92e21d32bd609eb0447a8af58b068bb00946098e927"],
    ),
    ('api_token = input() or "q2cVWKqY56zdW2lw16m0dxCY4WuwrjH3m15z"', ["q2cVWKqY56zdW2lw16m0dxCY4WuwrjH3m15z"]),
    ("const apiKey = opts.apiKey || 'M98UylR9pMknblyJRs2qHu2rsme190';", ["M98UylR9pMknblyJRs2qHu2rsme190"]),
    (
        'var secret = config.secret ?? "0d0953d0412506ed4987ff32372852bdd6cd1665";',
        ["0d0953d0412506ed4987ff32372852bdd6cd1665"],
    ),
    ("vault operator unseal 77adfe0192bb77adfe0192bb", ["77adfe0192bb77adfe0192bb"]),
    ("ngrok authtoken 2abCdEfGhIjKlMnOpQr_7tUvWxYz", ["2abCdEfGhIjKlMnOpQr_7tUvWxYz"]),
]
STAYS = [
    "token.SignedString([]byte(secret))",
    'Algorithm.HMAC256(System.getenv("JWT_SECRET2"))',
    'new SymmetricSecurityKey(Encoding.UTF8.GetBytes(config["Jwt:Key2"]))',
    "hmac.New(sha256.New, []byte(key2))",
    "setBearerAuth(token2)",
    "Fernet(key)",
    "bearer_auth(token)",
    'http.bearer("required")',
    "Fernet.generate_key()",
    'dsn := fmt.Sprintf("%s:%s@tcp(%s:%d)/%s", u, p, h, port, db)',
    '"${USER}:${PASS}@tcp(db:3306)/app"',
    "listen@tcp(80)",
    "define('AUTH_SALT', 'put your unique phrase here');",
    "define('NONCE_SALT', getenv('NONCE_SALT'));",
    '("salt", "pepper")',
    "define('PASSWORD_SALT_LENGTH', '32');",
    "the passphrase was too short (8)",
    "the password was read from env.DB_PASSWORD2",
    'new Client("AC-DC", "tour2024")',
    'FTP("host2", "anonymous", "")',
    'FTP("ftp.example.com", "anonymous", "guest")',
    'smtp.PlainAuth("", user, pass2, host)',
    "smtp.PlainAuth(identity, username, password, host)",
    "TIMEOUT ?= 300",
    "PASSWORD_LENGTH ?= 16",
    "DB_PASSWORD ?= $(shell pass db2)",
    'config[:password] ||= ENV["PW2"]',
    "options.password ??= defaults.password2;",
    'options.password ??= "";',
    'c.setopt(c.USERPWD, "%s:%s" % (user, pw2))',
    "curl_easy_setopt(curl, CURLOPT_USERPWD, userpwd2);",
    'os.getenv("CACHE_KEY", "default-cache-key-2024")',
    'os.getenv("SORT_KEY", "created_at_2")',
    'ENV.fetch("AWS_KEY_NAME", "deploy-key-2024")',
    'process.env.API_KEY || "your-api-key"',
    'process.env.API_KEY || ""',
    'process.env.TOKEN ?? "changeme"',
    'const password = opts.password || "password";',
    'let token = list.unwrap_or("default_value_2024")',
    'x.unwrap_or("none")',
    'env::var("LOG_KEY").unwrap_or("info".into())',
    'config.set("cache.key", "user_profile_2024")',
    'config.set("primary.key", "id")',
    'locale.get("error.key", "Something went wrong in 2024")',
    't("settings.api.key", "API key of version 2")',
    'const key = process.env.SORT_KEY || "createdAt2"',
    "env('APP_KEY')",
    "env('DB_PASSWORD', '')",
    "Win $1000! login now",
    "Total$45 and Pass$20 tickets",
    "Auth => ['user', 'pass']",
    "const KEY = atob('hello');",
    "KEY = base64.b64decode(data2)",
    "const key = opts.key || 'primaryKey2';",
    "cacheKey = opts.cacheKey || 'user_profile_by_id_2024'",
    'var secret = config.secret ?? "changeme";',
    "pw for db7 => see vault2",
    'new DataSource(url, "app", "utf8mb4")',
    "vault operator unseal",
    "vault operator init -key-shares=5",
    "ngrok authtoken your-token",
]


@pytest.mark.parametrize(("text", "values"), GOES)
def test_the_secret_is_redacted(scrubber: Scrubber, text: str, values: list[str]) -> None:
    scrubbed = scrubber.scrub(text).text
    assert not [value for value in values if value in scrubbed]
    assert scrubber.scrub(scrubbed).text == scrubbed


@pytest.mark.parametrize("text", STAYS)
def test_text_that_only_looks_like_it_stays(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text).text == text
