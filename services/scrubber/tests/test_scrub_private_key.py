# ruff: noqa: E501  # a key reads better in one piece
"""Private keys: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    (
        "key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq8J2k3l5m7n9p1q3r5s7t9\nu1v3w5x7y9==\n-----END RSA PRIVATE KEY-----\ndone",
        [
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq8J2k3l5m7n9p1q3r5s7t9\nu1v3w5x7y9==\n-----END RSA PRIVATE KEY-----"
        ],
        "key:\n[REDACTED]\ndone",
    ),
    (
        '{"k":"-----BEGIN RSA PRIVATE KEY-----\\nMIIEowIBAAKCAQEA7bq8J2k3l5m7n9p1q3r5s7t9\\nu1v3w5x7y9==\\n-----END RSA PRIVATE KEY-----"}',
        [
            "-----BEGIN RSA PRIVATE KEY-----\\nMIIEowIBAAKCAQEA7bq8J2k3l5m7n9p1q3r5s7t9\\nu1v3w5x7y9==\\n-----END RSA PRIVATE KEY-----"
        ],
        '{"k":"[REDACTED]"}',
    ),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt",
        ["-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt"],
        "[REDACTED]",
    ),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt\n\nwas found in the repository",
        ["-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt"],
        "[REDACTED]\n\nwas found in the repository",
    ),
    (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBF1kZ3EBCADabcdefgh1234\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
        [
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBF1kZ3EBCADabcdefgh1234\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"
        ],
        "[REDACTED]",
    ),
    (
        "-----BEGIN EC PRIVATE KEY----- MHcCAQEEIIabcdefghijklmnop1234 -----END EC PRIVATE KEY----- x",
        ["-----BEGIN EC PRIVATE KEY----- MHcCAQEEIIabcdefghijklmnop1234 -----END EC PRIVATE KEY-----"],
        "[REDACTED] x",
    ),
    (
        "Private-Lines: 1\nAAAAgQCabcdefghijklmnop1234567\nPrivate-MAC: 00",
        ["\nAAAAgQCabcdefghijklmnop1234567"],
        "Private-Lines: 1[REDACTED]\nPrivate-MAC: 00",
    ),
]
KEPT = [
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "the private key - keep it safe",
    "-----BEGIN PRIVATE KEY----- is the first line of a key",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_private_key_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("private_key", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_private_key_stays(check: Callable[..., None], text: str) -> None:
    check("private_key", text, [], text)
