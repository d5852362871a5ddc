"""URLs with credentials: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    (
        "postgres://app:s3cret@db.example.com:5432/app?x=1 now",
        ["postgres://app:s3cret@db.example.com:5432/app?x=1"],
        "[REDACTED] now",
    ),
    ("DATABASE_URL=postgresql+psycopg://a:b@h/db", ["postgresql+psycopg://a:b@h/db"], "DATABASE_URL=[REDACTED]"),
    ("redis://:pw@cache:6379/0.", ["redis://:pw@cache:6379/0"], "[REDACTED]."),
    ("mysql://root:p@ss/word@db/x", ["mysql://root:p@ss/word@db/x"], "[REDACTED]"),
    ("mongodb://u:p@h1:27017,h2:27017/db", ["mongodb://u:p@h1:27017,h2:27017/db"], "[REDACTED]"),
    ("<https://ann:pw@example.com/x>", ["https://ann:pw@example.com/x"], "<[REDACTED]>"),
    ("https://a1b2c3d4e5f6a7b8c9@git.example.com/r", ["https://a1b2c3d4e5f6a7b8c9@git.example.com/r"], "[REDACTED]"),
    ("jdbc:postgresql://h/db?user=a&password=b", ["jdbc:postgresql://h/db?user=a&password=b"], "[REDACTED]"),
    ("https://proxy.example.com/https://u:p@h/x", ["https://u:p@h/x"], "https://proxy.example.com/[REDACTED]"),
    (r"{\"url\":\"postgres://u:p@h/db\"}", ["postgres://u:p@h/db"], r"{\"url\":\"[REDACTED]\"}"),
    (r"postgres:\/\/u:p@h\/db", [r"postgres:\/\/u:p@h\/db"], "[REDACTED]"),
    ("postgres://ann:密码😀@db/app", ["postgres://ann:密码😀@db/app"], "[REDACTED]"),
    ("连接postgres://u:p@h/db。然后", ["postgres://u:p@h/db"], "连接[REDACTED]。然后"),
    ("https://a/x@b⭕⭕redis://:pw@h/0 now", ["redis://:pw@h/0"], "https://a/x@b⭕⭕[REDACTED] now"),
    ("jdbc:mysql://h/数据?user=a&pwd=swordfish", ["jdbc:mysql://h/数据?user=a&pwd=swordfish"], "[REDACTED]"),
    (r'{"a": "x\nredis://:pw@h/0"}', ["redis://:pw@h/0"], r'{"a": "x\n[REDACTED]"}'),
    (r'{"a": "x\u2028redis://:pw@h/0"}', ["redis://:pw@h/0"], r'{"a": "x\u2028[REDACTED]"}'),
    ("POSTGRES://U:P@H/DB", ["POSTGRES://U:P@H/DB"], "[REDACTED]"),
]
KEPT = [
    "https://example.com/path?q=1#top",
    "https://docs.example.com:8080/@scope/pkg",
    "https://example.com/a:b@c",
    "registry+https://git.example.com/index#proc-macro2@1.0.106",
    "git+ssh://git.example.com/team/project-2024-new@main",
    "sqlite:///data/app.db",
    "postgres://db.example.com/app",
    "postgres://${USER}:${PASSWORD}@db/app",
    "postgres://user:{password}@db/app",
    "std::vector<int>://",
    "see http://localhost:9090/metrics",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_connection_url_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("connection_url", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_connection_url_stays(check: Callable[..., None], text: str) -> None:
    check("connection_url", text, [], text)
