"""Which channels settings make, and what a mistake in them says."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay_notifier.channel_factory import channels
from assay_runtime.http_client import LONGEST_RETRY_AFTER_S, retry_after
from assay_schema.settings import NotifierSettings, SettingsError

SECRET = "0123456789abcdef0123456789abcdef"


def names(**settings: object) -> list[str]:
    return [channel.name for channel in channels(NotifierSettings.model_validate(settings))]


def test_without_settings_there_is_the_log() -> None:
    assert names() == ["log"]


def test_each_address_is_a_channel_but_the_members_of_one_alertmanager() -> None:
    found = names(
        alertmanager_urls="http://one:9093 http://two:9093",
        webhook_urls="https://a.example/x\nhttps://b.example/x",
        webhook_secret=SECRET,
        apprise_urls="json://127.0.0.1:1/x",
    )
    assert [name.partition("-")[0] for name in found] == ["log", "alertmanager", "webhook", "webhook", "json"]
    assert len(set(found)) == 5


def test_a_channels_name_is_stable_and_tells_nothing_of_its_address() -> None:
    url = "https://hooks.example/secret-token"
    assert names(webhook_urls=url, webhook_secret=SECRET) == names(webhook_urls=f" {url} ", webhook_secret=SECRET)
    assert "secret" not in names(webhook_urls=url, webhook_secret=SECRET)[1]


def test_addresses_and_secrets_come_from_files_with_remarks(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("# on call\nhttps://a.example/x\n\n  # nobody\nhttps://b.example/x\n")
    (tmp_path / "secret").write_text(SECRET + "\n")
    found = names(webhook_urls_file=tmp_path / "urls", webhook_secret_file=tmp_path / "secret")
    assert len(found) == 3


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"webhook_urls": "https://a.example"}, "notifier.webhook_secret"),
        ({"webhook_urls": "https://a.example", "webhook_secret": "short"}, "24 bytes"),
        ({"webhook_urls": "a.example", "webhook_secret": SECRET}, "notifier.webhook_urls: address 1 must look like"),
        ({"alertmanager_urls": "http://ok:9093 ftp://x"}, "notifier.alertmanager_urls: address 2"),
        ({"alertmanager_urls": "http://host:port"}, "notifier.alertmanager_urls: address 1"),
        ({"apprise_urls": "nothing://token/secret"}, "notifier.apprise_urls: address 1 (nothing://...)"),
        ({"webhook_urls_file": "/nowhere/urls"}, "ASSAY_NOTIFIER_WEBHOOK_URLS_FILE"),
        ({"alertmanager_urls": "http://a:1", "alertmanager_token_file": "/nowhere/t"}, "ALERTMANAGER_TOKEN_FILE"),
        ({"alertmanager_urls": "http://a:1", "tls_ca_file": "/nowhere/ca.pem"}, "notifier.tls_ca_file"),
    ],
)
def test_a_mistake_names_its_setting_and_shows_no_secret(settings: dict[str, str], wanted: str) -> None:
    with pytest.raises(SettingsError) as error:
        names(**settings)
    assert wanted in str(error.value)
    assert "secret" not in str(error.value).replace("webhook_secret", "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("7", 7),
        ("99999", LONGEST_RETRY_AFTER_S),
        ("soon", 0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0),
    ],
)
def test_a_receiver_may_ask_for_a_pause_within_bounds(text: str | None, seconds: float) -> None:
    assert retry_after(text, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
