"""Lines of the log."""

import logging

from assay_runtime.logs import TextFormatter


def test_a_text_log_is_one_printable_line_whatever_is_in_the_message() -> None:
    record = logging.LogRecord(
        "x", logging.INFO, "here.py", 1, "%s", ("a\x1b[2J\n12:00:00 error   forged\x9b\u202e",), None
    )
    line = TextFormatter().format(record)
    assert line.isprintable()
    assert "forged" in line
