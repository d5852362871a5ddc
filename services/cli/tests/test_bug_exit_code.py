"""The exit code of a bug: a script takes 1 for a finding."""

import subprocess
import sys

BUG = """
import assay_operations.audit_log
def opened_log(data):
    raise ZeroDivisionError("of a bug\x1b[2J")
assay_operations.audit_log.opened_log = opened_log
from assay_cli.main import app
app(["audit", "key"])
"""


def test_a_bug_exits_2_with_a_traceback_that_is_filtered_for_the_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", BUG], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert b"Traceback" in done.stderr
    assert b"ZeroDivisionError: of a bug" in done.stderr
    assert b"\x1b" not in done.stderr
