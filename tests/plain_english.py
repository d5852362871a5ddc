"""Fail on habits of wording that make the documentation hard to read: `python -m tests.plain_english`, a part of `make lint`.

Prose is checked, and so are the comments in shell and TOML examples. Other code blocks, `inline code`, link targets and generated text are
skipped. To check more files, add their pattern to `PAGES`; files that are not Markdown also need a reader next to `prose`.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: Files to check, as patterns below the root of the repository.
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "deploy/**/*.md")

#: A page that has one of these is generated: change its generator.
GENERATED = ("<!-- Made by `make docs`", "Made from the migrations by")

#: Each habit as a regular expression, and what to write instead.
HABITS = {
    r"told from chance": "statistically significant",
    r"(?:is|are|it was|were) told\b": "is notified, receives, is reported",
    r"mend(?:s|ed|ing)?": "fix",
    r"anew": "again, from scratch, re-",
    r"for ever|forever": "permanently, indefinitely",
    r"nothing but": "only",
    r"but for": "except for, apart from",
    r"who(?:m|so)?ever": "the actor: operator, caller, consumer, anyone who",
    r"whatever": "any, every, regardless of",
    r"somebody|nobody": "the actor: an operator, a consumer, no one",
    r"besides?": "next to, compared with, in addition to, also",
    r"of (?:its|their|your) own": "its own, your own, separate, dedicated",
    r"(?:is|are|was|were) well(?=[.,;:?!]|$)|what is well": "healthy, OK, valid",
    r"may not": "must not, or might not",
    r"worked out": "computed",
    r"sa(?:y|ys|id) so": "reports, states",
    r"(?:go|goes|went) on with": "continues, resumes",
    r"(?:was|were|is|are) given up|given up entries": "dead letter, dead-lettered",
    r"(?<!there )(?:is|are) no (?!longer|more|such|way|need)\w+(?=[.,;])": "is not a",
    r"thereby|wherein|whereof|thereof|therein|hitherto|whilst|whence": "leave it out",
    r"such as (?:has|have|had|is|are)": "those that have, which has",
    r"for want of": "without, because there is no",
    r"fares?": "performs, does",
    r"(?:go|goes|went) before": "takes precedence over",
}
_HABITS = [(re.compile(rf"\b(?:{habit})\b", re.IGNORECASE), instead) for habit, instead in HABITS.items()]

#: A statement whose subject is a clause, as in "What cannot be sent is dropped."
_CLAUSE = re.compile(
    r"(?:(?<=[.;!?] )|(?<=\n\n)|(?<=\n[-*] )|(?<=\n)(?=What|Who))(?:What|Who|Whom) "
    r"(?:[^.?!|\n]|\n(?!\n))*(?=[.|]|\n\n|\Z)"
)
_COMMENTED = ("sh", "toml")


class Hit(NamedTuple):
    """A habit, and where it is."""

    line: int
    words: str
    instead: str


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _block(found: re.Match[str]) -> str:
    """The comments of a code block in their places, all else blank."""
    if found["language"] not in _COMMENTED:
        return _blank(found)
    return re.sub(r"^(?:(?! # |^# ).)*(?= # |^# |$)", _blank, found[0], flags=re.MULTILINE)


def prose(page: str) -> str:
    """Return a Markdown page with all that is not prose blanked out, line for line."""
    page = re.sub(r"(?ms)^ *```(?P<language>\w*).*?^ *```$", _block, page)
    page = re.sub(r"(?s)<!-- begin:.*?<!-- end -->", _blank, page)
    page = re.sub(r"`[^`\n]+`", lambda code: "x" * len(code[0]), page)
    return re.sub(r"\]\([^)\s]+\)", _blank, page)


def hits(page: str) -> Iterator[Hit]:
    """Yield every habit in a Markdown page."""
    text = prose(page)
    places = [(found, instead) for habit, instead in _HABITS for found in habit.finditer(text)]
    sentences = re.sub(r"(?m)^#.*$", _blank, text)
    places += [(found, "a noun as the subject") for found in _CLAUSE.finditer(sentences)]
    for found, instead in sorted(places, key=lambda place: place[0].start()):
        yield Hit(text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())[:60], instead)


def pages() -> Iterator[Path]:
    """Yield the files that are written by hand."""
    for path in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        if not any(mark in path.read_text("utf-8")[:500] for mark in GENERATED):
            yield path


def report(path: Path, page: str) -> list[str]:
    """Return a line for every habit in a page: `file:line: words: write suggestion`."""
    return [f"{path.relative_to(ROOT)}:{hit.line}: {hit.words!r}: write {hit.instead}" for hit in hits(page)]


def main(paths: Iterable[Path]) -> int:
    """Print every habit in the files; return 1 if there is one."""
    complaints = [line for path in paths for line in report(path, path.read_text("utf-8"))]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main([Path(name).resolve() for name in sys.argv[1:]] or pages()))
