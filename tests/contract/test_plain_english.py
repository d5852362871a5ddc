"""Hand-written pages and shipped modules use plain English, and the check finds every habit that it lists."""

from pathlib import Path

import pytest

from tests import plain_english

#: One sentence for each habit, in their order.
SENTENCES = (
    "Worse, and told from chance.",
    "The operator is told.",
    "Run this to mend it.",
    "The rollup is made anew.",
    "The id is unique for ever.",
    "It reads nothing but ids.",
    "All but for the last row are sent.",
    "Ask whoever wrote it.",
    "It runs whatever happens.",
    "A check that somebody wrote.",
    "The lock is beside the file.",
    "Each has a spool of its own.",
    "The store is well.",
    "It may not be read.",
    "The cost is worked out.",
    "The log says so.",
    "It goes on with the next entry.",
    "The entry was given up.",
    "A name that is no setting.",
    "It thereby saves memory.",
    "A target such as has no answers.",
    "It waits for want of space.",
    "Retry if the target may fare better.",
    "The environment goes before the file.",
)


def test_every_hand_written_page_is_plain_english(capsys: pytest.CaptureFixture[str]) -> None:
    assert plain_english.main(plain_english.pages()) == 0, capsys.readouterr().err


def test_generated_pages_are_left_to_their_generators() -> None:
    names = {path.name for path in plain_english.pages()}
    assert {"README.md", "capture.md", "security.md"} <= names
    assert names.isdisjoint({"events.md", "families.md", "settings.md", "tables.md"})


@pytest.mark.parametrize(("habit", "sentence"), list(zip(plain_english.HABITS, SENTENCES, strict=True)))
def test_each_habit_is_found(habit: str, sentence: str) -> None:
    [hit] = plain_english.hits(f"# Page\n\n{sentence}\n")
    assert (hit.line, hit.instead) == (3, plain_english.HABITS[habit])


@pytest.mark.parametrize("statement", ["What cannot be sent is dropped.", "- Who comes second is passed over."])
def test_a_clause_as_the_subject_is_found(statement: str) -> None:
    [hit] = plain_english.hits(f"Text.\n\n{statement}\n")
    assert (hit.line, hit.instead) == (3, "a noun as the subject")


@pytest.mark.parametrize(
    "page",
    [
        "## What is not covered\n\nPower loss.\n",
        "What does it cost? Nothing.\n",
        "Run `assay mend --anew`, see [this](mend.md).\n",
        "```json\n{'mend': 'anew'}\n```\n",
        "```sh\nmend anew  # fix it\n```\n",
        "<!-- begin: made by make docs -->\nmend\n<!-- end -->\n",
        "There is no floor, and it no longer blocks.\n",
    ],
)
def test_questions_headings_code_and_generated_text_pass(page: str) -> None:
    assert list(plain_english.hits(page)) == []


def test_the_text_of_every_shipped_module_is_plain_english(capsys: pytest.CaptureFixture[str]) -> None:
    modules = plain_english.modules()
    assert {"engine.py", "capture.py", "settings.py"} <= {path.name for path in modules}
    assert plain_english.main(modules) == 0, capsys.readouterr().err


MODULE = '''
"A module that is mended."
PROMPT = "Say it in whatever words."
class Box:
    """Contain things.

    It may not be empty, and it may
    not be `mend`.
    """
    query = "SELECT nobody FROM somebody"  # made anew
    #: Read by
    #: somebody.
    size: int = 1

    def open(self, name):
        names = {"nobody": 1}
        raise ValueError(f"{name} has a key of "
                         "its own")
'''


def test_docstrings_comments_and_messages_are_checked_but_not_assigned_texts() -> None:
    assert [(hit.line, " ".join(hit.words.split())) for hit in plain_english.module_hits(MODULE)] == [
        (2, "mended"),
        (7, "may not"),
        (7, "may not"),
        (10, "anew"),
        (12, "somebody"),
        (17, "of its own"),
    ]


def test_a_module_is_reported_like_a_page() -> None:
    path = plain_english.ROOT / "services" / "sample.py"
    assert plain_english.report(path, '"""Mend it now."""\n') == ["services/sample.py:1: 'Mend': write fix"]


@pytest.mark.parametrize("text", ["It may or may not be stored.", "She may, but not now."])
def test_similar_words_pass(text: str) -> None:
    assert list(plain_english.hits(f"{text}\n")) == []


def test_comments_in_shell_examples_are_checked() -> None:
    [hit] = plain_english.hits("```sh\nassay doctor   # what is well\n```\n")
    assert hit.line == 2


def test_the_report_names_file_line_words_and_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    page = plain_english.ROOT / "docs" / "sample.md"
    assert plain_english.report(Path(page), "One.\n\nMend it.\n") == ["docs/sample.md:3: 'Mend': write fix"]
    assert plain_english.main([]) == 0
    assert capsys.readouterr().err == ""
