"""Relative links in Markdown lead to files and headings that exist, and the README links to every page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for pattern in ("*.md", "docs/*.md", "deploy/**/*.md", "services/*/*.md", "shared/*/*.md")
    for path in sorted(ROOT.glob(pattern))
    if ".venv" not in path.parts
]


def _anchors(page: str) -> set[str]:
    """Return the anchor of every heading, as GitHub makes it."""
    found: dict[str, int] = {}
    anchors = set()
    for heading in re.findall(r"^#+ +(.+?) *$", re.sub(r"(?ms)^ *```.*?^ *```$", "", page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        anchors.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return anchors


def _links(page: str) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^ *```.*?^ *```$", "", page)):
        if not re.match(r"[a-z]+:", target):
            yield target


def broken(page: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    found = []
    for target in _links(page.read_text("utf-8")):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in _anchors(file.read_text("utf-8"))):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    assert broken(page) == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Title\n\n## What is `not` covered?\n\n```sh\n# a comment\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#what-is-not-covered) [b](gone.md) [c](other.md#a-comment) [d](#here) [e](https://example.com/x)"
    )
    assert broken(page) == ["gone.md", "other.md#a-comment", "#here"]


def test_the_readme_links_to_every_page() -> None:
    linked = set(_links((ROOT / "README.md").read_text("utf-8")))
    assert {f"docs/{path.name}" for path in ROOT.glob("docs/*.md")} <= linked
