"""Run the few tests that failed once more, by themselves.

    python -m tests.second_try build/all.xml

Reads what `pytest --junit-xml` wrote. A test that then passes failed for what ran beside it, and is named: it is a defect of the test or a
race in what it tests. Exits 1 if none failed, if more than a few did, or if one fails again.
"""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

#: More than this is no matter of chance.
MOST = 3


def failed(report: Path) -> list[str]:
    """The tests that failed, as pytest takes their names. Where groups are kept together, a name ends in `@` and its group."""
    return [
        f"{case.get('classname', '').replace('.', '/')}.py::{re.sub(r'@[^]]*$', '', case.get('name', ''))}"
        for case in ET.parse(report).getroot().iter("testcase")  # noqa: S314  # pytest wrote it
        if case.find("failure") is not None or case.find("error") is not None
    ]


def main() -> int:
    """The command line."""
    names = list(dict.fromkeys(failed(Path(sys.argv[1]))))
    if not 0 < len(names) <= MOST:
        print(f"{len(names)} tests failed: no second try", file=sys.stderr)
        return 1
    if subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *names], check=False).returncode:
        return 1
    print("\n".join(("These tests failed beside others and passed by themselves. They are not steady:", *names)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
