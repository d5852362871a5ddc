"""How `assay judge status` and `cost` print rows that are wider than the terminal."""

from assay_cli.output.rows import stacked, width

ROWS = [{"project": "shop", "judge_error": 3}, {"project": "a\x1b[31mb", "judge_error": None}]


def test_rows_wider_than_the_terminal_are_stacked_a_value_a_line_without_control_characters() -> None:
    first, second = stacked(ROWS).split("\n\n")
    assert first == "project      shop\njudge_error  3"
    assert "\x1b" not in second


def test_the_width_of_a_table_is_that_of_its_longest_values() -> None:
    assert width([{"n": 1, "name": "x" * 90}]) == 1 + 3 + 90
