"""Build the anchors from the settings. Errors name their setting, before anything is sent."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from assay_auditor.anchors.anchor import Anchor
from assay_auditor.anchors.cosignature import WitnessKey
from assay_auditor.anchors.directory import Directory
from assay_auditor.anchors.http import Post
from assay_auditor.anchors.timestamp import TimestampServer
from assay_auditor.anchors.witness import Witness
from assay_auditor.notes import NoteError
from assay_runtime.transport import is_http, trust_of
from assay_schema.settings import AuditorSettings, SettingsError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


def anchors_of(settings: AuditorSettings) -> list[Anchor]:
    """Return every configured anchor. Raises `SettingsError`."""
    trust = cache(lambda: trust_of(settings.tls_ca_file, "auditor.tls_ca_file"))
    found: list[Anchor] = []
    for key, url in witnesses_of(settings):
        _check_http(url, "witnesses")
        post = Post(url.rstrip("/") + "/add-checkpoint", settings.anchor_timeout_s, trust(), "auditor.witnesses")
        found.append(Witness(key, post))
    if server := settings.timestamp_url:
        _check_http(server, "timestamp_url")
        post = Post(server, settings.anchor_timeout_s, trust(), "auditor.timestamp_url")
        if settings.timestamp_ca_file is None:
            raise SettingsError(
                "auditor.timestamp_ca_file (or ASSAY_AUDITOR_TIMESTAMP_CA_FILE) is missing: without the root certificate of the time-stamp "
                "server, its time stamps cannot be checked"
            )
        found.append(TimestampServer(post, roots_of(settings), settings.timestamp_s))
    if settings.anchor_directory is not None:
        found.append(Directory(settings.anchor_directory))
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise SettingsError(f"auditor.witnesses: two anchors have the same name: {', '.join(sorted(names))}")
    return found


def witnesses_of(settings: AuditorSettings) -> list[tuple[WitnessKey, str]]:
    """Return key and address of every witness. Raises `SettingsError`."""
    found = []
    for number, text in enumerate(filter(None, map(str.strip, re.split(r"[,\n]", settings.witnesses))), 1):
        vkey, *urls = text.split()
        try:
            key = WitnessKey.parsed(vkey)
        except NoteError as error:
            raise SettingsError(f"auditor.witnesses (or ASSAY_AUDITOR_WITNESSES): witness {number}: {error}") from None
        if len(urls) != 1:
            raise SettingsError(
                f"auditor.witnesses (or ASSAY_AUDITOR_WITNESSES): witness {number} must be its public key, a blank, and its address"
            )
        found.append((key, urls[0]))
    return found


def roots_of(settings: AuditorSettings) -> Sequence["Certificate"]:
    """Return the root certificates of the time-stamp server; () if none are set. Raises `SettingsError`."""
    from cryptography.x509 import load_pem_x509_certificates

    path = settings.timestamp_ca_file
    if path is None:
        return ()
    try:
        return load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"auditor.timestamp_ca_file: cannot read {path} ({error.strerror})") from None
    except ValueError:
        raise SettingsError(f"auditor.timestamp_ca_file: no certificate is in {path}") from None


def _check_http(url: str, name: str) -> None:
    if not is_http(url):
        raise SettingsError(f"auditor.{name}: an address must look like https://host or http://host:8080")
