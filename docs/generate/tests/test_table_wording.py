"""`docs/tables.md` replaces comments of applied migrations by clearer text."""

import re

from assay_runtime.migrate import migrations
from docs.generate.table_wording import REWORDED, reworded
from tests.plain_english import hits

COMMENTS = {
    comment
    for migration in migrations()
    for statement in migration.statements("assay_base", "assay")
    for comment in re.findall(r"COMMENT '(.*?)'(?=,?$)", statement, re.MULTILINE)
}


def test_every_replaced_comment_is_in_a_migration() -> None:
    assert set(REWORDED) <= COMMENTS


def test_a_comment_without_a_replacement_is_shown_unchanged() -> None:
    assert reworded("The tenant.") == "The tenant."


def test_shown_comments_are_plain_english() -> None:
    assert [(comment, hit.words) for comment in map(reworded, sorted(COMMENTS)) for hit in hits(comment)] == []
