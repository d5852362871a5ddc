"""Fail on habits of wording that make text hard to read: `python -m tests.plain_english`, a part of `make lint`.

Pages: prose is checked, and so are the comments in shell and TOML examples. Other code blocks, `inline code`, link targets and generated
text are skipped. Modules of the shipped packages: docstrings, comments and messages are checked. Messages are all strings of several
words, except those that are assigned to a name of a module or class, such as SQL and prompts.

To check more files, add their pattern to `PAGES` or `MODULES`; other kinds of files also need a reader next to `prose` and `texts`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: Files to check, as patterns below the root of the repository.
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/*.md", "deploy/**/*.md")

MODULES = ("shared/*/assay_*/**/*.py", "services/*/assay_*/**/*.py", "deploy/demo/assay_*/**/*.py")

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
    r"whatever": "any, every, regardless of, after any error",
    r"somebody|nobody": "the actor: an operator, a consumer, no one",
    r"besides?": "next to, compared with, in addition to, also",
    r"of (?:its|their|your) own": "its own, your own, separate, dedicated",
    r"(?:is|are|was|were) well(?=[.,;:?!]|$)|what is well": "healthy, OK, valid",
    r"(?<!or )may not": "must not, cannot, or might not",
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


def _broken(habit: str) -> str:
    """Return a pattern whose words may stand on several lines; a space that ends a look-behind stays one space."""
    return re.sub(r" (?!\))", r"\\s+", habit)


_HABITS = [(re.compile(rf"\b(?:{_broken(habit)})\b", re.IGNORECASE), instead) for habit, instead in HABITS.items()]

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
    return re.sub(r"\]\([^)\s]+\)", _blank, _without_code(page))


class Text(NamedTuple):
    """A piece of prose, and the line that it begins in."""

    line: int
    text: str


def texts(source: str) -> Iterator[Text]:
    """Yield the docstrings, comments and messages of a Python module, `inline code` blanked out."""
    tree = ast.parse(source)
    assigned = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and id(node) not in assigned
        ):
            yield Text(node.lineno, _without_code(node.value))
    yield from _comments(source)


def _comments(source: str) -> Iterator[Text]:
    """Yield the comments of a module; consecutive lines are one text."""
    first, lines = 1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != first + len(lines):
                yield Text(first, _without_code("\n".join(lines)))
                first, lines = token.start[0], []
            lines.append(token.string.lstrip("#: "))
    yield Text(first, _without_code("\n".join(lines)))


def _without_code(text: str) -> str:
    return re.sub(r"`[^`\n]+`", lambda code: "x" * len(code[0]), text)


def module_hits(source: str) -> list[Hit]:
    """Return every habit in a Python module, in order of lines."""
    found = [
        Hit(text.line + hit.line - 1, hit.words, hit.instead) for text in texts(source) for hit in _hits(text.text)
    ]
    return sorted(found)


def hits(page: str) -> Iterator[Hit]:
    """Yield every habit in a Markdown page."""
    return _hits(prose(page))


def _hits(text: str) -> Iterator[Hit]:
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


def modules() -> list[Path]:
    """Return the modules of the shipped packages."""
    return sorted({path for pattern in MODULES for path in ROOT.glob(pattern)})


def report(path: Path, content: str) -> list[str]:
    """Return a line for every habit in a file: `file:line: words: write suggestion`."""
    found = module_hits(content) if path.suffix == ".py" else hits(content)
    return [f"{path.relative_to(ROOT)}:{hit.line}: {hit.words!r}: write {hit.instead}" for hit in found]


def main(paths: Iterable[Path]) -> int:
    """Print every habit in the files; return 1 if there is one."""
    complaints = [line for path in paths for line in report(path, path.read_text("utf-8"))]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main([Path(name).resolve() for name in sys.argv[1:]] or [*pages(), *modules()]))
