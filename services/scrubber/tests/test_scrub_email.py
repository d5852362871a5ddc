"""Email addresses: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("email me at alice@example.com about this", ["alice@example.com"], "email me at [REDACTED] about this"),
    ("alice@example.com cc bob@other.org", ["alice@example.com", "bob@other.org"], "[REDACTED] cc [REDACTED]"),
    ("Ann <ann.b+x@mail.example.co.uk>.", ["ann.b+x@mail.example.co.uk"], "Ann <[REDACTED]>."),
    ("o'brien@example.com", ["o'brien@example.com"], "[REDACTED]"),
    ("'ann@example.com'", ["ann@example.com"], "'[REDACTED]'"),
    ("josé@exämple.com", ["josé@exämple.com"], "[REDACTED]"),
    ("мария@пример.рф", ["мария@пример.рф"], "[REDACTED]"),
    ("ann@xn--bcher-kva.example", ["ann@xn--bcher-kva.example"], "[REDACTED]"),
    ("邮箱alice@example.com。", ["alice@example.com"], "邮箱[REDACTED]。"),
    ("ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ", ["ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ"], "[REDACTED]"),
    ("a\u200bnn@exam\u00adple.com!", ["a\u200bnn@exam\u00adple.com"], "[REDACTED]!"),
    ("?to=ann%40example.com&x=1", ["ann%40example.com"], "?to=[REDACTED]&x=1"),
    ("ann&#64;example.com", ["ann&#64;example.com"], "[REDACTED]"),
    (r'{"to":"ann\u0040example.com"}', [r"ann\u0040example.com"], '{"to":"[REDACTED]"}'),
    (r"first\nann@example.com\nlast", ["ann@example.com"], r"first\n[REDACTED]\nlast"),
    ("ann@example.com:report.txt", ["ann@example.com"], "[REDACTED]:report.txt"),
    ("https://ann@example.com/x", ["ann@example.com"], "https://[REDACTED]/x"),
    ("ann@example.com2024", ["ann@example.com"], "[REDACTED]2024"),
    ("ann at example dot com", ["ann at example dot com"], "[REDACTED]"),
    ("ann.b [at] example [dot] com!", ["ann.b [at] example [dot] com"], "[REDACTED]!"),
    ("to bob (at) example.org now", ["bob (at) example.org"], "to [REDACTED] now"),
    ("ann(dot)b(at)example(dot)co(dot)uk", ["ann(dot)b(at)example(dot)co(dot)uk"], "[REDACTED]"),
    (
        "x c2VuZCBtYWlsIHRvIGFubkBleGFtcGxlLmNvbSBub3c= y",
        ["c2VuZCBtYWlsIHRvIGFubkBleGFtcGxlLmNvbSBub3c="],
        "x [REDACTED] y",
    ),
    ("ann%2540example.com", ["ann%2540example.com"], "[REDACTED]"),
    ("a" * 100 + "@example.com", ["a" * 100 + "@example.com"], "[REDACTED]"),
    ("alice[@]example[.]org", ["alice[@]example[.]org"], "[REDACTED]"),
    ("alice@example[.]org", ["alice@example[.]org"], "[REDACTED]"),
    ("alice(@)example.org", ["alice(@)example.org"], "[REDACTED]"),
    ("alice&amp;#64;example.org", ["alice&amp;#64;example.org"], "[REDACTED]"),
    ("alice\\u{40}example.org", ["alice\\u{40}example.org"], "[REDACTED]"),
    ("alice\u0000@\u0000example.org", ["alice\u0000@\u0000example.org"], "[REDACTED]"),
    ("mail ann {at} example {punkt} de now", ["ann {at} example {punkt} de"], "mail [REDACTED] now"),
    ("correo luis arroba ejemplo punto es", ["luis arroba ejemplo punto es"], "correo [REDACTED]"),
    ("ann-at-example-dot-com", ["ann-at-example-dot-com"], "[REDACTED]"),
    ("Return-Path: <ana.lopez=40firma.com>", ["ana.lopez=40firma.com"], "Return-Path: <[REDACTED]>"),
    ("\x1b[33mmail\x1b[0m: a\x1b[1mna@firma.com", ["a\x1b[1mna@firma.com"], "\x1b[33mmail\x1b[0m: [REDACTED]"),
]
KEPT = [
    "git@git.example.com:team/project",
    "ssh://git@git.example.com/team/project",
    "user@localhost",
    "ann@example.c",
    "package@1.2.3-beta.rc",
    "@decorator.name",
    "y = x @ w.T",
    "https://docs.example.com/@ann/page",
    "a" * 10_000 + "!",
    "meet at noon, on the dot of ten",
    "look at it dot by dot",
    "[.] and\n@pytest.mark.slow",
    "look-at-the-dot-by-the-door",
    "una arroba de trigo punto final",
    "?width=40.webp&x=1",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_email_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("email", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_email_stays(check: Callable[..., None], text: str) -> None:
    check("email", text, [], text)
