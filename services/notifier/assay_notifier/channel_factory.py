"""Build the channels from the settings. Errors name their setting, before anything is sent."""

import hashlib
import logging
import re
import ssl
from functools import cache
from pathlib import Path

from pydantic import SecretStr

from assay_notifier.alertmanager import Alertmanager, member_address
from assay_notifier.apprise_channel import AppriseChannel, address_of
from assay_notifier.channel import Channel
from assay_notifier.http import Post
from assay_notifier.log_channel import LogChannel
from assay_notifier.signing import CREATE, key_of
from assay_notifier.webhook import Webhook
from assay_runtime.config import secret
from assay_runtime.transport import host_in_clear, is_http, trust_of
from assay_schema.settings import NotifierSettings, SettingsError

log = logging.getLogger(__name__)


def channels(settings: NotifierSettings) -> list[Channel]:
    """Return every configured channel, always including the log. Raises `SettingsError`."""
    configured: list[Channel] = [LogChannel(data := settings.data_directory)]
    # Cached, because reading the system's certificates takes memory: only if it is needed.
    trust = cache(lambda: trust_of(settings.tls_ca_file, "notifier.tls_ca_file"))
    if urls := _addresses(settings.alertmanager_urls, settings.alertmanager_urls_file, "alertmanager_urls"):
        members = [_member(settings, url, number, trust()) for number, url in enumerate(urls, 1)]
        configured.append(Alertmanager(members, settings.expire_s, data))
    if urls := _addresses(settings.webhook_urls, settings.webhook_urls_file, "webhook_urls"):
        key = _key(settings)
        for number, url in enumerate(urls, 1):
            _check_http(url, number, "webhook_urls")
            post = Post(url, settings.timeout_s, trust(), "notifier.webhook_urls")
            configured.append(Webhook(_named("webhook", url), post, key, data))
    for number, url in enumerate(_addresses(settings.apprise_urls, settings.apprise_urls_file, "apprise_urls"), 1):
        address = address_of(url)
        if address is None:
            raise SettingsError(
                f"notifier.apprise_urls: address {number} ({url.partition('://')[0][:20]}://...) is not a valid Apprise address"
            )
        configured.append(
            AppriseChannel(_named(url.partition("://")[0].lower(), url), address, "notifier.apprise_urls", data)
        )
    return configured


def _member(settings: NotifierSettings, url: str, number: int, trust: ssl.SSLContext) -> Post:
    _check_http(url, number, "alertmanager_urls")
    address, headers = member_address(url)
    if settings.alertmanager_token_file:
        token = secret(SecretStr(""), settings.alertmanager_token_file, "ASSAY_NOTIFIER_ALERTMANAGER_TOKEN_FILE")
        headers = {"authorization": f"Bearer {token}"}
    if headers and (host := host_in_clear(url)):
        log.warning(
            "credentials for Alertmanager are sent to %s unencrypted; use https:// in notifier.alertmanager_urls", host
        )
    sees = "notifier.alertmanager_urls and notifier.alertmanager_token_file"
    return Post(address, settings.timeout_s, trust, sees, headers)


def _addresses(value: SecretStr, file: Path | None, name: str) -> list[str]:
    """Split addresses at blanks and lines. In a file, lines that begin with `#` are comments."""
    text = secret(value, file, f"ASSAY_NOTIFIER_{name}_FILE".upper())
    kept = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [url for line in kept for url in re.split(r"\s+", line.strip()) if url]


def _key(settings: NotifierSettings) -> bytes:
    text = secret(settings.webhook_secret, settings.webhook_secret_file, "ASSAY_NOTIFIER_WEBHOOK_SECRET_FILE")
    if not text:
        raise SettingsError(
            "notifier.webhook_secret (or ASSAY_NOTIFIER_WEBHOOK_SECRET, or notifier.webhook_secret_file) is missing: webhooks are signed; "
            f"create one with: {CREATE}"
        )
    try:
        return key_of(text)
    except ValueError as error:
        raise SettingsError(f"notifier.webhook_secret {error}") from None


def _check_http(url: str, number: int, name: str) -> None:
    if not is_http(url):
        raise SettingsError(f"notifier.{name}: address {number} must look like https://host:9093 or http://host:9093")


def _named(kind: str, url: str) -> str:
    """Return a channel's name: stable, without revealing the address."""
    return f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
