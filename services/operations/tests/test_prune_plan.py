"""What `assay prune` deletes, and how."""

from assay_operations.prune import CASES, FAILURES, Part, Selection, later_copies, sort_out, targets
from assay_schema.fields import Kind


def test_parts_that_go_whole_are_dropped_and_only_mixed_partitions_rewritten() -> None:
    parts = [
        Part("20260101", "a", 10, 10),
        Part("20260101", "b", 10, 10),
        Part("20260102", "c", 10, 4),
        Part("20260102", "d", 5, 1),
        Part("20260103", "e", 7, 0),
    ]
    whole, mixed = sort_out(parts)
    assert [part.name for part in whole] == ["a", "b"]
    assert mixed == {"20260102": 5}


def test_what_was_stored_after_the_plan_is_never_selected_and_a_project_is_quoted() -> None:
    stored = "stored_at <= fromUnixTimestamp64Milli(9, 'UTC')"
    assert Selection(None, 9).conditions(FAILURES) == [stored]
    assert Selection(None, 9, "it's").conditions(FAILURES) == [r"project = 'it\'s'", stored]
    assert Selection(5, 9, "p").conditions(FAILURES) == [
        "created_at <= fromUnixTimestamp64Milli(5, 'UTC')",
        "project = 'p'",
        stored,
    ]


def test_failures_go_with_everything_and_stay_with_one_kind() -> None:
    assert [target.name for target in targets(None)] == [
        "candidates",
        "answers",
        "feedback",
        "tool_calls",
        "server_events",
        "session_parts",
        "scores",
        "labels",
        "capture_failures",
        "contradiction_pairs",
        "contradiction_labels",
    ]
    assert [target.name for target in targets(Kind.ANSWER)] == ["answers", "scores", "labels"]


def test_cases_of_datasets_go_only_with_a_whole_project() -> None:
    assert Selection(None, 9, "p").erases_project
    assert not Selection(None, 9).erases_project
    assert not Selection(5, 9, "p").erases_project
    assert targets(None, erases_project=True) == [*targets(None), CASES]
    assert CASES not in targets(Kind.ANSWER, erases_project=True)


def test_later_copies_are_looked_for_only_where_there_is_a_later() -> None:
    assert later_copies("t", FAILURES, Selection(None, 9)) is None
    sql = later_copies("t", targets(Kind.ANSWER)[0], Selection(5, 9, "p"))
    assert sql is not None
    assert "NOT (created_at <= fromUnixTimestamp64Milli(5, 'UTC'))" in sql
    assert sql.count("stored_at <= fromUnixTimestamp64Milli(9, 'UTC')") == 2
    assert "event_time <= fromUnixTimestamp64Milli(86400005, 'UTC')" in sql
