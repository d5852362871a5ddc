"""Match email addresses, also with international letters and hosts."""

import re

from assay_scrubber.family import Family, LiteralRule, Literals, View
from assay_scrubber.taxonomy import Category

_LOCAL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-'&\x80"
_LONGEST_LOCAL = 256  # RFC 5321 allows 64; a longer one is redacted too
_VERSION = re.compile(rb"@v?[0-9]+\.[0-9]+(?:\.|$)")
_VERSION_START = b"v0123456789"
_ESCAPED = re.compile(rb"[nrtbf]|u[0-9A-Fa-f]{4}")
_SERVICE_ACCOUNTS = (b"git", b"hg")

# The host is limited to 255 characters; labels cannot contain the dot, so backtracking takes at most one step per label.
_HOST = re.compile(
    rb"@(?=[A-Za-z0-9\x80\x81])(?:(?:[A-Za-z0-9\x80_][A-Za-z0-9\x80_\-]{0,62}+|\x81{1,24}+)\.){1,8}(?:xn--[A-Za-z0-9\-]{2,59}|[A-Za-z\x80]{2,63})"
)


def _address(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    at = match.start()
    left = view.raw[max(0, at - _LONGEST_LOCAL) : at]
    local = left[len(left.rstrip(_LOCAL)) :].lstrip(b".'&-")
    if not local or (match[0][1] in _VERSION_START and _VERSION.match(match[0])):  # package@1.2.3-beta.rc is a version
        return None
    start = at - len(local)
    if view.raw[start - 1 : start] == b"\\" and (escape := _ESCAPED.match(local)):
        start += escape.end()  # the letter belongs to the escape: JSON inside JSON remains valid
        if start == at:
            return None
    if view.raw[start - 1 : start] == b"$" and local.isupper() and local.replace(b"_", b"").isalpha():
        return None  # `$USER:$PASS@host` is a template
    if local in _SERVICE_ACCOUNTS and view.raw[match.end() : match.end() + 1] in (b":", b"/"):
        return None  # git@host:owner/repository names a service, not a person
    return start, match.end()


# "ann [at] example [dot] com", "ann (at) example.com", "ann at example dot com": the brackets or the word `dot` identify it.
_SPELLED_DOT = rb"(?: ?[\[({<] ?(?:dot|punkt|punto|ponto|point|\.) ?[\])}>] ?| (?:dot|punkt|punto|ponto) )"
# Only where no word of a sentence fits: `at the dot by the door` is not an address.
_TOP = (
    rb"(?:com|org|net|edu|gov|mil|info|biz|io|ai|dev|app|co|uk|us|ca|de|fr|es|nl|be|ch|eu|ru|jp|cn|au|nz|br|mx|pl|se|dk|fi|pt|ie|cz"
    rb"|gr|hu|ro|sk|si|bg|hr|lt|lv|ee|lu|tr|ua|il|kr|tw|hk|sg|za|ar|cl|example|test"
    # Words of a sentence, unless the sentence ends there.
    rb"|(?:no|at|is|in|it|me)(?=[ \t]*(?:[.,;:!?)\n]|$)))"
)
_LABEL = rb"[a-z0-9\x80][a-z0-9\x80\-]{0,62}+"
_BRACKETED = re.compile(
    rb"(?:[\[({<] ?(?:at|@|arroba|\x80t) ?[\])}>] ?|@)%b(?:(?:%b|\.)%b){0,4}"
    rb"(?:%b%b| ?[\[({<] ?(?:dot|punkt|punto|ponto|point|\.) ?[\])}>] ?[a-z]{2,24}|\.[a-z]{2,24})(?![a-z0-9])"
    % (_LABEL, _SPELLED_DOT, _LABEL, _SPELLED_DOT, _TOP)
)
_SPELLED = re.compile(rb" (?:at|@) %b(?: dot %b){0,4} dot %b(?![a-z0-9])" % (_LABEL, _LABEL, _TOP))
# The spelled-out form in Spanish and Portuguese, and with hyphens for spaces.
_ARROBA = re.compile(
    rb" arroba %b(?:%b%b){0,4}(?:%b|\.)%b(?![a-z0-9])" % (_LABEL, _SPELLED_DOT, _LABEL, _SPELLED_DOT, _TOP)
)
_HYPHENED = re.compile(rb"-at-[a-z0-9\x80]{1,63}(?:-dot-[a-z0-9\x80]{1,63}){0,4}?-dot-%b(?![a-z0-9\-])" % _TOP)
_WRITTEN_LOCAL = re.compile(
    rb"[a-z0-9\x80_%+\-'.]{1,64}(?:(?: ?[\[({<] ?(?:dot|\.) ?[\])}>] ?| dot )[a-z0-9\x80_%+\-']{1,64}){0,3} ?$"
)


# Quoted-printable (RFC 2045) in headers.
_QUOTED = re.compile(
    rb"(?<![a-z0-9_.%%+\-=&?\\])[a-z][a-z0-9_.%%+\-]{2,63}=40%b(?:\.%b){0,4}\.%b(?![a-z0-9.\-])"
    % (_LABEL, _LABEL, _TOP)
)


def _quoted(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.span()


_BRACKET = re.compile(rb"[\[({]")


def _written(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    at, written = match.start(), match.group()
    if written[:1] == b"@" and (view.raw[at - 1 : at].isspace() or not _BRACKET.search(written)):
        return None  # written normally: the other pattern matches it
    local = _WRITTEN_LOCAL.search(view.low, max(0, at - _LONGEST_WRITTEN), at)
    return (local.start(), match.end()) if local else None


_LONGEST_WRITTEN = 96

FAMILY = Family(
    name="email",
    category=Category.CONTACT,
    rank=50,
    gate=Literals((b"@",), mark=b"@"),
    rules=(LiteralRule(_HOST, _address, anchored=True, needle=b"@"),),
    description="Email addresses, also with international letters and hosts.",
    examples=("alice@example.com", "josé@exämple.com", "alice%40example.com"),
    counterexamples=("user@localhost", "git@git.example.com:team/project", "package@1.2.3-beta.rc"),
    more=(
        (
            Literals(
                (
                    b"at]",
                    b"at)",
                    b"at}",
                    b"<at>",
                    b"\x80t)",
                    b"\x80t]",
                    b"@]",
                    b"@)",
                    b"@}",
                    b"[.]",
                    b"(.)",
                    b"{.}",
                    b"[dot]",
                    b"(dot)",
                    b"arroba)",
                )
            ),
            (LiteralRule(_BRACKETED, _written, lower=True),),
        ),
        (Literals((b"=40",), mark=b":"), (LiteralRule(_QUOTED, _quoted, lower=True, needle=b"=40"),)),
        (Literals((b" dot ",)), (LiteralRule(_SPELLED, _written, lower=True),)),
        (Literals((b" arroba ",)), (LiteralRule(_ARROBA, _written, lower=True),)),
        (Literals((b"-dot-",)), (LiteralRule(_HYPHENED, _written, lower=True),)),
    ),
)
