"""Notification channels in the settings: their validity, and if the running system has them."""

from pathlib import Path

from assay_operations.clients import secrets_file, settings_and_source
from assay_schema.settings import NotifierSettings

#: Settings that name a channel or its credentials.
_NAMING = (
    "alertmanager_urls", "alertmanager_urls_file", "alertmanager_token_file", "webhook_urls", "webhook_urls_file", "webhook_secret",
    "webhook_secret_file", "apprise_urls", "apprise_urls_file", "tls_ca_file",
)  # fmt: skip


def check_channels(settings: NotifierSettings) -> list[str]:
    """Return the name of every channel that the notifier would use.

    Raises `SettingsError` if it would not start.
    """
    from assay_notifier.channel_factory import channels

    return [channel.name for channel in channels(settings)]


def own_settings() -> NotifierSettings:
    """Return the section [notifier] of ./assay.toml and the environment. Raises `SettingsError`."""
    from assay_runtime.config import load_settings

    return load_settings().notifier


def unused_channels(data: Path) -> bool:
    """Return True if the settings name channels that the running `assay up` does not have yet.

    These are ./assay.toml and the environment. `assay up` copies them to its data directory when it starts.
    """
    used, source = settings_and_source("notifier", data)
    if source != str(secrets_file("notifier", data)):
        return False
    wanted = own_settings()
    return any(
        name in wanted.model_fields_set and getattr(wanted, name) != getattr(used.notifier, name) for name in _NAMING
    )
