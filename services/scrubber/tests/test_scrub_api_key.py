"""Keys with a vendor's prefix: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("key AKIAIOSFODNN7EXAMPLE.", ["AKIAIOSFODNN7EXAMPLE"], "key [REDACTED]."),
    (
        "push with ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6!",
        ["ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"],
        "push with [REDACTED]!",
    ),
    ("gitlab glpat-aB3dE6gH9jK2mN5pQ8sT", ["glpat-aB3dE6gH9jK2mN5pQ8sT"], "gitlab [REDACTED]"),
    (
        "xoxb-123456789012-1234567890123-aB3dE6gH9jK2mN5pQ8sT1vW4",
        ["xoxb-123456789012-1234567890123-aB3dE6gH9jK2mN5pQ8sT1vW4"],
        "[REDACTED]",
    ),
    ("stripe sk_live_aB3dE6gH9jK2mN5pQ8sT1vW4", ["sk_live_aB3dE6gH9jK2mN5pQ8sT1vW4"], "stripe [REDACTED]"),
    ("sk-proj-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6", ["sk-proj-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"], "[REDACTED]"),
    (
        "sk-ant-api03-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7-bC0_dF3hJ6AA",
        ["sk-ant-api03-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7-bC0_dF3hJ6AA"],
        "[REDACTED]",
    ),
    ("maps AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", ["AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"], "maps [REDACTED]"),
    ("npm_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6", ["npm_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"], "[REDACTED]"),
    (
        "mail SG.aB3dE6gH9jK2mN5pQ8sT1v.W4yZ7bC0dF3hJ6aB3dE6gH9jK2mN5pQ8sT1vW4yZ7b",
        ["SG.aB3dE6gH9jK2mN5pQ8sT1v.W4yZ7bC0dF3hJ6aB3dE6gH9jK2mN5pQ8sT1vW4yZ7b"],
        "mail [REDACTED]",
    ),
    ("SK0123456789abcdef0123456789abcdef", ["SK0123456789abcdef0123456789abcdef"], "[REDACTED]"),
    ("hvs.CAESIJ1aB3dE6gH9jK2mN5pQ8sT", ["hvs.CAESIJ1aB3dE6gH9jK2mN5pQ8sT"], "[REDACTED]"),
    ("hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH", ["hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"], "[REDACTED]"),
    ("0123456789abcdef0123456789abcdef-us12", ["0123456789abcdef0123456789abcdef-us12"], "[REDACTED]"),
    (
        "url/ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6/x",
        ["ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"],
        "url/[REDACTED]/x",
    ),
    (
        "https://hooks.slack.com/services/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",
        ["https://hooks.slack.com/services/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"],
        "[REDACTED]",
    ),
    (
        "to https://discord.com/api/webhooks/123456789012345678/aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6aB3dE6gH now",
        ["https://discord.com/api/webhooks/123456789012345678/aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6aB3dE6gH"],
        "to [REDACTED] now",
    ),
    (
        "url=https://chat.example.com/hooks/xyzq1abc2defghij3klmnop4qr&x",
        ["https://chat.example.com/hooks/xyzq1abc2defghij3klmnop4qr"],
        "url=[REDACTED]&x",
    ),
    (
        "secret abc8Q~aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3h",
        ["abc8Q~aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3h"],
        "secret [REDACTED]",
    ),
]
KEPT = [
    "sk-toggleable__control-label-arrow",
    "sk-ecdsa-sha2-nistp256-cert-v01",
    "sha 0123456789abcdef0123456789abcdef01234567",
    "id 123e4567-e89b-42d3-a456-426614174000",
    "pk_live_aB3dE6gH9jK2mN5pQ8sT1vW4",
    "glpat-short",
    "AKIA is the prefix",
    "a_very_long_function_name_in_python_code",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "https://git-scm.com/docs/githooks/en/hooks/post-receive-123456789012345",
    "https://hooks.slack.com/services/",
    "src/hooks/useAuthenticationTokenFromServer2",
    "the 8Q~ of 12 in q~aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_api_key_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("api_key", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_api_key_stays(check: Callable[..., None], text: str) -> None:
    check("api_key", text, [], text)
