"""How many tests of a run passed and were skipped, and whether each was skipped for a reason that holds.

    python -m tests.skips "all servers" build/all.xml
    python -m tests.skips "bare PATH" build/bare.xml --bare

Reads what `pytest --junit-xml` wrote. Exits 1 if a test was skipped that should have run here.
"""

import argparse
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from tests.programs import NPM, lacking_agent

#: Reasons that hold on a machine with every program: what its kernel forbids, and what is no part of the workspace's lock.
ANYWHERE = frozenset(
    {
        "mounting is not allowed here",
        "processes may not be traced here",
        "calls are broken on Linux x86-64 only",
        "needs assay-scrubber[kingfisher]",
        "needs google-adk",
        "needs agentevals",
        "needs google-cloud-aiplatform",
        "needs aics-witness",
        "needs aics-tlog",
        "needs sigstore",
        "needs sd-jwt",
        "needs go and golang.org/x/mod",
        "the kernel has no Landlock",
        *map(lacking_agent, NPM),
        "only root can take another account",
        "the kernel's Landlock cannot refuse TCP",
    }
)
#: On a bare machine also a program it lacks, as `tests/programs.py` words it.
BARE = re.compile(r"needs .+ \(Debian: [\w-]+\)")
#: The most that may be skipped on a bare machine.
BARE_MOST = 30


def read(report: Path) -> tuple[int, Counter[str]]:
    """How many passed, and how many were skipped by reason."""
    passed, skipped = 0, Counter[str]()
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314  # pytest wrote it
        if (skip := case.find("skipped")) is not None:
            skipped[skip.get("message", "")] += 1
        elif case.find("failure") is None and case.find("error") is None:
            passed += 1
    return passed, skipped


def unfounded(skipped: Counter[str], *, bare: bool) -> list[str]:
    """What is wrong with these skips."""
    wrong = [
        f"skipped without a good reason: {reason}"
        for reason in skipped
        if reason not in ANYWHERE and not (bare and BARE.fullmatch(reason))
    ]
    if bare and skipped.total() > BARE_MOST:
        wrong.append(f"{skipped.total()} tests were skipped, more than {BARE_MOST}")
    return wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("report", type=Path)
    parser.add_argument("--bare", action="store_true")
    asked = parser.parse_args()
    passed, skipped = read(asked.report)
    print(f"{asked.name}: {passed:,} passed, {skipped.total():,} skipped")
    for reason, count in skipped.most_common():
        print(f"  {count:>4} {reason}")
    wrong = unfounded(skipped, bare=asked.bare)
    for each in wrong:
        print(f"{asked.name}: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
