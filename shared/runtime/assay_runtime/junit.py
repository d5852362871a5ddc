"""JUnit XML of a gate's results. Pure."""

from typing import Literal
from xml.etree import ElementTree as ET

from assay_schema.printable import printable

Outcome = Literal["pass", "fail", "inconclusive"]


class JUnitSuite:
    """A list of tests.

    Inconclusive ones are errors if they block, like the command's exit code 3, unless `inconclusive` counts them as passed or failed.
    Tests that do not block never fail: they are skipped.
    """

    def __init__(self, name: str, inconclusive: Outcome = "inconclusive") -> None:
        self._class_name = name.replace(" ", ".")
        self._inconclusive = inconclusive
        self._root = ET.Element("testsuite", name=name)
        self._failures = self._skipped = self._errors = 0

    def add(self, name: str, message: str, outcome: Outcome, *, advisory: str = "") -> None:
        """Add one test. `advisory`: the reason why it does not block; empty if it does."""
        case = ET.SubElement(self._root, "testcase", classname=self._class_name, name=printable(name))
        counted, text = self._inconclusive if outcome == "inconclusive" else outcome, printable(message)
        if counted == "fail" and not advisory:
            self._failures += 1
            ET.SubElement(case, "failure", message=text)
        elif counted == "inconclusive" and not advisory:
            self._errors += 1
            ET.SubElement(case, "error", message=text)
        elif counted != "pass":
            self._skipped += 1
            ET.SubElement(case, "skipped", message=f"{advisory}: {text}")
        else:
            ET.SubElement(case, "system-out").text = text

    def __str__(self) -> str:
        counts = {
            "tests": len(self._root),
            "failures": self._failures,
            "skipped": self._skipped,
            "errors": self._errors,
        }
        for name, count in counts.items():
            self._root.set(name, str(count))
        ET.indent(self._root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(self._root, encoding="unicode") + "\n"
