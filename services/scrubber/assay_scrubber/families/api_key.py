"""Match keys and tokens that vendors mark with a prefix.

Broad on purpose: a prefix, an alphabet and a minimum length. Every repeat is bounded, and a failing match reads at most the minimum length:
the work is linear.
"""

import re
from itertools import groupby

from assay_scrubber.family import Family, LiteralRule, Literals, LongWords, View, WordRule
from assay_scrubber.taxonomy import Category

_W = "[A-Za-z0-9]"
_U = r"[A-Za-z0-9_\-]"
_X = "[0-9a-fA-F]"

#: Pattern of each kind. The first character is written out because the kinds are grouped by it.
VENDORS = (
    # cloud
    ("AWS access key", "AKIA[A-Z0-9]{16}"),
    ("AWS access key", "ASIA[A-Z0-9]{16}"),
    ("AWS access key", "ABIA[A-Z0-9]{16}"),
    ("AWS access key", "ACCA[A-Z0-9]{16}"),
    ("Amazon Bedrock key", "ABSK[A-Za-z0-9+/]{60,200}+"),
    ("Google API key", f"AIza{_U}{{35}}"),
    ("Google OAuth secret", f"GOCSPX-{_U}{{20,40}}"),
    ("Alibaba access key", f"LTAI{_W}{{12,28}}"),
    ("Tencent secret id", f"AKID{_W}{{32}}"),
    ("DigitalOcean token", f"do[opr]_v1_{_X}{{40,64}}"),
    ("Databricks token", f"dapi{_X}{{32}}(?:-[0-9])?"),
    ("Heroku key", f"HRKU-{_U}{{20,64}}"),
    ("Fly token", f"fo1_{_U}{{20,60}}"),
    ("Fly token", r"fm[12]r?_[A-Za-z0-9+/=_,\-]{40,200}+"),
    ("PlanetScale token", f"pscale_(?:tkn|pw|oauth)_{_U}{{30,64}}"),
    ("Supabase key", f"sbp_{_X}{{40}}"),
    ("Supabase key", f"sb_secret_{_U}{{20,60}}"),
    ("Netlify token", f"nfp_{_W}{{30,60}}"),
    ("Pulumi token", f"pul-{_X}{{40}}"),
    ("Vercel token", f"vc[pikar]_{_U}{{24,80}}"),
    ("Render key", f"rnd_{_W}{{24,40}}"),
    # code hosting and packages
    ("GitHub token", f"gh[pousr]_{_W}{{30,255}}"),
    ("GitHub token", f"github_pat_{_W}{{20}}{_U}{{2,235}}"),
    ("GitLab token", f"gl(?:pat|dt|rt|rtr|ptt|cbt|soat|ffct|imt|agent|oas|ft)-{_U}{{20,220}}"),
    ("npm token", f"npm_{_W}{{36}}"),
    ("PyPI token", f"pypi-AgE{_U}{{40,250}}"),
    ("RubyGems key", f"rubygems_{_X}{{48}}"),
    ("Docker token", f"dckr_[po]at_{_U}{{24,60}}"),
    ("crates.io token", f"cio{_W}{{32}}"),
    ("Artifactory key", f"AKCp{_W}{{40,80}}"),
    ("NuGet key", "oy2[a-z0-9]{43}"),
    ("CircleCI token", f"CCIPAT_{_U}{{30,80}}"),
    ("Buildkite token", f"bk[ua]a_{_W}{{40}}"),
    ("Atlassian token", r"ATATT3[A-Za-z0-9_\-=]{60,250}+"),
    ("Bitbucket token", r"ATBB[A-Za-z0-9_=.\-]{24,60}+"),
    ("Sentry token", r"sntry[su]_[A-Za-z0-9+/=_\-]{40,250}+"),
    ("Postman key", f"PMAK-{_X}{{24}}-{_X}{{34}}"),
    # messages
    ("Slack token", r"xox[abeoprsd]-[A-Za-z0-9\-]{10,250}+"),
    ("Slack token", r"xapp-[0-9]-[A-Za-z0-9\-]{10,250}+"),
    ("SendGrid key", rf"SG\.{_U}{{16,32}}\.{_U}{{16,64}}"),
    ("Twilio key", f"SK{_X}{{32}}"),
    ("Mailgun key", f"key-{_X}{{32}}"),
    ("Brevo key", f"xkeysib-{_X}{{64}}-{_W}{{16}}"),
    ("Facebook token", f"EAA[A-Z]{_W}{{60,250}}+"),
    ("Telegram bot token", f"AA[A-Za-z]{_U}{{32}}"),
    # money
    ("Stripe key", f"rk_(?:live|test|prod)_{_W}{{10,250}}"),
    ("Stripe key", f"sk_(?:live|test|prod)_{_W}{{10,250}}"),
    ("Stripe webhook secret", f"whsec_{_W}{{24,80}}"),
    ("Square token", f"sq0[a-z]{{3}}-{_U}{{22,50}}"),
    ("Square token", "EAAA[A-Za-z0-9_\\-]{60}"),
    ("Shopify token", f"shp(?:at|ca|pa|ss)_{_X}{{32}}"),
    ("Adyen key", f"AQE[a-z0-9]{_U}{{40,250}}"),
    ("PayPal token", f"access_token\\$production\\${_W}{{16}}\\${_X}{{32}}"),
    # models
    ("sk key", f"sk-{_U}{{20,250}}+"),
    ("Hugging Face token", f"hf_{_W}{{30,60}}"),
    ("Hugging Face token", f"api_org_{_W}{{30,60}}"),
    ("Replicate token", f"r8_{_W}{{32,60}}"),
    ("Groq key", f"gsk_{_W}{{40,80}}"),
    ("xAI key", f"xai-{_W}{{60,100}}"),
    ("Perplexity key", f"pplx-{_W}{{32,80}}"),
    ("LangSmith key", f"lsv2_(?:pt|sk)_{_X}{{32}}_{_X}{{10}}"),
    ("Langfuse key", f"sk-lf-{_X}{{8}}(?:-{_X}{{4}}){{3}}-{_X}{{12}}"),
    ("Tavily key", f"tvly-(?:dev-|prod-)?{_W}{{24,60}}"),
    ("Pinecone key", f"pcsk_{_U}{{40,100}}"),
    ("NVIDIA key", f"nvapi-{_U}{{40,100}}"),
    # work
    ("Linear key", f"lin_(?:api|oauth)_{_W}{{32,64}}"),
    ("Notion token", f"secret_{_W}{{43}}"),
    ("Notion token", f"ntn_{_W}{{40,60}}"),
    ("Figma token", f"figd_{_U}{{36,60}}"),
    ("Grafana token", r"glc_[A-Za-z0-9+/]{32,250}+={0,2}"),
    ("Grafana token", f"glsa_{_W}{{32}}_{_X}{{8}}"),
    ("New Relic key", "NRAK-[A-Z0-9]{27}"),
    ("New Relic key", "NRI[IQR]-[A-Za-z0-9_\\-]{32}"),
    ("Contentful token", f"CFPAT-{_U}{{40,60}}"),
    ("Typeform token", "tfp_[A-Za-z0-9_\\-.=]{40,80}"),
    ("Prefect key", f"pn[ub]_{_W}{{36}}"),
    ("Duffel token", f"duffel_(?:test|live)_{_U}{{40,60}}"),
    ("Shippo token", f"shippo_(?:live|test)_{_X}{{40}}"),
    ("EasyPost key", f"EZ[AT]K{_W}{{54}}"),
    ("HubSpot token", f"pat-(?:na|eu)1-{_X}{{8}}-{_X}{{4}}-{_X}{{4}}-{_X}{{4}}-{_X}{{12}}"),
    ("Intercom or Okta token", f"SSWS{_U}{{40,60}}"),
    ("age key", "AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("1Password token", r"ops_eyJ[A-Za-z0-9_\-]{60,250}+"),
    ("1Password secret key", "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    # cloud, data and delivery, further
    ("Scaleway access key", "SCW[A-Z0-9]{17}"),
    ("Yandex key", f"AQVN{_U}{{35,40}}"),
    ("Yandex key", "YCA[JM][A-Za-z0-9_\\-]{21,38}"),
    ("UpCloud token", f"ucat_{_W}{{20,60}}"),
    ("Tailscale key", f"tskey-(?:auth|api|client|scim|webhook)-{_U}{{16,80}}"),
    ("Neon key", "napi_[a-z0-9]{50,80}"),
    ("Xata key", f"xau_{_W}{{30,60}}"),
    ("CockroachDB key", f"CCDB1_{_U}{{30,80}}"),
    ("Elastic key", r"ess[au]_[A-Za-z0-9+/]{50,90}+={0,2}"),
    ("Deno token", f"dd[pow]_{_W}{{36}}"),
    ("Docker swarm token", "SWM(?:TKN|KEY)-1-[A-Za-z0-9+/\\-]{40,90}+"),
    ("OpenShift token", f"sha256~{_U}{{40,46}}"),
    ("LaunchDarkly key", f"sdk-{_X}{{8}}-(?:{_X}{{4}}-){{3}}{_X}{{12}}"),
    ("LaunchDarkly key", f"api-{_X}{{8}}-(?:{_X}{{4}}-){{3}}{_X}{{12}}"),
    ("Infracost key", f"ico-{_W}{{32}}"),
    ("Ionic token", f"ion_{_W}{{42}}"),
    ("Octopus key", "API-[A-Z0-9]{25,34}"),
    ("Bitbucket token", r"BBDC-[A-Za-z0-9+/]{40,50}+"),
    ("Buildkite token", f"bk(?:pt|ct|aj)_{_W}{{40,120}}"),
    ("Clojars token", "CLOJARS_[a-z0-9]{60}"),
    ("SonarQube token", "sq[pau]_[a-f0-9]{40}"),
    ("Sourcegraph token", f"sgp_(?:local_|{_X}{{16}}_)?{_X}{{40,64}}"),
    ("Sourcegraph token", f"slk_{_X}{{40,64}}"),
    ("GitLab runner token", f"GR1348941{_U}{{20,40}}"),
    ("Packagist token", "packagist_[ao][a-z]{2}_[a-f0-9]{60,90}"),
    ("Postman token", f"PMAT-{_W}{{26}}"),
    ("CircleCI token", f"CCIPRJ_{_U}{{40,90}}"),
    ("Atlassian token", r"AT[CS]TT3[A-Za-z0-9_\-=]{60,250}+"),
    ("Honeycomb key", f"hca[il][ak]_{_W}{{40,64}}"),
    ("Axiom token", f"xa(?:at|pt)-{_X}{{8}}-(?:{_X}{{4}}-){{3}}{_X}{{12}}"),
    ("Logfire token", f"pylf_v[0-9]_[a-z]{{2}}_{_W}{{40,60}}"),
    ("PostHog key", f"phx_{_W}{{40,60}}"),
    ("Grafana key", f"eyJrIjoi{_W}{{60,400}}"),
    # messages, money, models, work, further
    ("Slack token", r"xox[ce](?:-|\.xox[bp]-)[A-Za-z0-9\-]{10,250}+"),
    ("Resend key", f"re_{_W}{{8}}_{_W}{{24}}"),
    ("Pinterest token", f"pina_{_W}{{30,64}}"),
    ("Flutterwave key", f"FLWSECK(?:_TEST)?-{_W}{{12,48}}-?X?"),
    ("Paddle key", f"pdl_(?:live|sdbx)_apikey_{_W}{{26}}_{_U}{{22}}_{_U}{{3}}"),
    ("Plaid token", f"access-(?:sandbox|development|production)-{_X}{{8}}-(?:{_X}{{4}}-){{3}}{_X}{{12}}"),
    ("Xendit key", f"xnd_(?:production|development)_{_W}{{30,100}}"),
    ("Polar token", f"polar_(?:o?at|pat|rst|cls|cs)_{_W}{{30,64}}"),
    ("Mercury token", f"mercury_production_{_U}{{30,100}}"),
    ("Persona key", f"persona_(?:production|sandbox)_{_U}{{20,80}}"),
    ("ElevenLabs key", "sk_[a-f0-9]{48}"),
    ("Cartesia key", f"sk_car_{_U}{{20,60}}"),
    ("Cerebras key", "csk-[a-z0-9]{40,60}"),
    ("Together key", f"tgp_v1_{_U}{{40,50}}"),
    ("RunPod key", f"rpa_{_W}{{40,60}}"),
    ("Llama Cloud key", f"llx-{_W}{{40,64}}"),
    ("Voyage key", f"pa-{_U}{{43}}"),
    ("Weights & Biases key", f"wandb_v1_{_U}{{60,100}}"),
    ("E2B key", "e2b_[a-f0-9]{40}"),
    ("Apify token", f"apify_api_{_W}{{34,40}}"),
    ("Brave Search key", f"BSA{_U}{{27,29}}"),
    ("Adobe secret", "p8e-[a-z0-9]{32}"),
    ("Frame.io token", f"fio-u-{_U}{{60,64}}"),
    ("WakaTime key", f"waka_{_X}{{8}}-(?:{_X}{{4}}-){{3}}{_X}{{12}}"),
    ("ReadMe token", "rdme_[a-z0-9]{60,80}"),
    ("Val Town token", f"vtwn_{_W}{{20,40}}"),
    ("Zuplo key", "zpka_[a-z0-9]{30,40}_[a-f0-9]{8}"),
    ("Lichess token", f"lip_{_W}{{16,30}}"),
)
_DOTTED = (
    ("SendGrid key", rf"SG\.{_U}{{16,32}}\.{_U}{{16,64}}"),
    ("Google OAuth token", rf"ya29\.{_U}{{20,250}}"),
    ("Vault token", rf"hv[sbr]\.{_U}{{20,120}}"),
    ("Terraform token", rf"{_W}{{14}}\.atlasv1\.{_U}{{40,120}}"),
    ("Airtable token", rf"pat{_W}{{14}}\.{_X}{{64}}"),
    ("Discord token", rf"[MNO]{_U}{{23,27}}\.{_U}{{6}}\.{_U}{{27,45}}"),
    ("Doppler token", rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:{_U}{{2,35}}\.)?{_W}{{40,44}}"),
    ("Dynatrace token", r"dt0[a-zA-Z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("Mapbox token", rf"sk\.eyJ{_U}{{20,120}}\.{_U}{{20,40}}"),
    ("MailerSend token", rf"mlsn\.{_X}{{60,70}}"),
    ("Onfido token", rf"api_live(?:_us|_ca)?\.{_U}{{10,20}}\.{_U}{{30,40}}"),
    ("Harness token", rf"[ps]at\.{_U}{{22}}\.{_X}{{24}}\.{_W}{{20}}"),
    ("Cloudflare origin CA key", rf"v1\.0-{_X}{{24}}-{_X}{{120,150}}"),
)
_LEFT = "(?<![A-Za-z0-9])"


def _grouped(kinds: tuple[tuple[str, str], ...]) -> re.Pattern[bytes]:
    """Return one alternative per first character, which comes first: the search skips to the next possible start."""
    patterns = sorted(pattern for _, pattern in kinds)
    literal = [pattern for pattern in patterns if pattern[0].isalnum()]
    parts = [f"{_LEFT}(?:{'|'.join(p for p in patterns if p not in literal)})"] if len(literal) < len(patterns) else []
    for first, group in groupby(literal, key=lambda p: p[0]):
        parts.append(f"{first}(?<![A-Za-z0-9]{first})(?:{'|'.join(p[1:] for p in group)})")
    return re.compile("|".join(parts).encode())


_TELEGRAM = 35
_SK_BODY = re.compile(rb"[A-Za-z0-9]{16}")
_HEX_GROUPS = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-")


def _key(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    token = match.group()
    if token.startswith(b"sk-"):
        # `sk-` also begins style classes and names of algorithms, which consist of words; a key does not.
        if not any(c in b"0123456789" for c in token):
            return None
        if not _SK_BODY.search(token, 3) and not _HEX_GROUPS.search(token):
            return None
    elif token.translate(None, b"0123456789") == token and (b"_" in token[10:] or b"-" in token[10:]):
        return None  # a long name in code
    if (
        token.startswith(b"AA")
        and len(token) == _TELEGRAM
        and not match.string[match.start() - 9 : match.start()].rstrip(b":").isdigit()
    ):
        return None  # a Telegram token follows its bot's number
    return match.span()


def _azure(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.start() - 52, match.end()


# Webhook URLs that let anyone post: Slack, Discord, Teams, Mattermost and Rocket.Chat, Feishu, WeCom, Zapier, Make, IFTTT.
_UUID = rf"{_X}{{8}}-(?:{_X}{{4}}-){{3}}{_X}{{12}}"
_WEBHOOK = re.compile(
    (
        r"hook(?:"
        r"s\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+\-]{20,160}+"
        rf"|s/[0-9]{{15,22}}/{_U}{{40,100}}+"
        rf"|b?2?/{_UUID}@{_UUID}/IncomingWebhook/{_W}{{32}}/{_UUID}(?:/{_U}{{20,80}}+)?"
        rf"|s/(?:[a-z0-9]{{26}}|{_W}{{17,24}}/{_W}{{40,80}})(?![A-Za-z0-9])"
        rf"|(?:/|/send\?key=){_UUID}"
        rf"|s\.zapier\.com/hooks/catch/[0-9]{{3,12}}/{_W}{{5,16}}"
        rf"|\.(?:[a-z0-9]{{2,8}}\.)?make\.com/{_W}{{24,48}}"
        r")"
    ).encode()
)
_LONGEST_HOST = 120
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_OF_ADDRESS = _LETTERS + b"0123456789.-_:/"
# A client secret of Entra ID: three characters, a digit, `Q~`, and the rest.
_ENTRA = re.compile(
    rb"Q~(?<=[A-Za-z0-9_.~\-]{3}[0-9]Q~)(?<![A-Za-z0-9][A-Za-z0-9_.~\-]{3}[0-9]Q~)[A-Za-z0-9_.~\-]{31,34}(?![A-Za-z0-9])"
)


def _entra(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.start() - 4, match.end()


def _webhook(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Return the whole URL, with its scheme and host if it has them."""
    start, end = match.span()
    if match.group().startswith(b"hooks/") and not any(c in b"0123456789" for c in match.group()):
        return None
    before = view.raw[max(0, start - _LONGEST_HOST) : start]
    at = before.rfind(b"://")
    if at < 0 or before[at + 3 :].translate(None, _OF_ADDRESS):
        return None
    return start - len(before) + len(before[:at].rstrip(_LETTERS)), end


def _mailchimp(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.span()


def _dotted(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.span()


FAMILY = Family(
    name="api_key",
    category=Category.CREDENTIAL,
    rank=30,
    gate=LongWords(),
    rules=(
        WordRule(_grouped(VENDORS), _key),
        WordRule(_grouped(_DOTTED), _dotted, dotted=True),
        WordRule(re.compile(rb"(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])"), _mailchimp, anchored=True),
        WordRule(re.compile(rb"JQQJ9(?<=[A-Za-z0-9]{52}JQQJ9)[A-Za-z0-9]{27}"), _azure),
    ),
    more=(
        (Literals((b"hook",), mark=b":"), (LiteralRule(_WEBHOOK, _webhook, anchored=True, fewest=1, needle=b"hook"),)),
        (Literals((b"q~",)), (LiteralRule(_ENTRA, _entra, anchored=True, fewest=1, needle=b"q~"),)),
    ),
    description="Keys and tokens with a vendor's prefix: cloud, code hosting, messages, payments, models, work.",
    examples=("AKIAIOSFODNN7EXAMPLE", "glpat-EXAMPLE0EXAMPLE0EXAM", "hvs.EXAMPLE0EXAMPLE0EXAMPLE0"),
    counterexamples=(
        "sk-toggleable__control",
        "keys without a prefix (see `secret`)",
        "publishable keys: pk_live_",
    ),
)
