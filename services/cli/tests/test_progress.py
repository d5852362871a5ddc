"""Progress of a long command."""

import io
import json

from assay_cli.output.progress import Mode, Progress, for_machines, for_people


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_people_see_rows_rate_and_elapsed_time() -> None:
    assert for_people(1_200_000, 2_000_000, 10.0) == "1,200,000 of 2,000,000 rows, 120,000 rows/s, 10 s"
    assert for_people(0, None, 0.0) == "0 rows, 0 rows/s, 0 s"


def test_machines_see_one_json_object() -> None:
    assert json.loads(for_machines(10, None, 4.0)) == {
        "event": "progress", "rows": 10, "total_rows": None, "rows_per_s": 2.5, "elapsed_s": 4.0,
    }  # fmt: skip


def test_a_terminal_is_left_with_a_clean_line() -> None:
    stream = Terminal()
    with Progress(Mode.AUTO, stream) as seen:
        seen.rows = 5
        seen.say()
    assert stream.getvalue().startswith("\r\x1b[K5 rows")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_log_gets_whole_lines_and_a_short_command_none() -> None:
    stream = io.StringIO()
    with Progress(Mode.AUTO, stream) as seen:
        seen.rows = 5
    assert stream.getvalue() == ""
    seen.say()
    assert stream.getvalue().endswith(" s\n")


def test_machines_get_at_least_one_record_and_none_is_none() -> None:
    for_json, silent = io.StringIO(), io.StringIO()
    with Progress(Mode.JSON, for_json) as seen, Progress(Mode.NONE, silent):
        seen.rows = 3
    assert [json.loads(line)["rows"] for line in for_json.getvalue().splitlines()] == [3]
    assert silent.getvalue() == ""
