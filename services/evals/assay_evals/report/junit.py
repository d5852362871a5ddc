"""Report a comparison as JUnit XML: a test for each metric and for each slice. Pure."""

from xml.etree import ElementTree as ET

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.slices import SliceChange, SliceCheck
from assay_evals.compare.verdicts import Stage, Verdict
from assay_evals.metrics.metric_names import QUANTILES
from assay_evals.report.wording import change, meaning, problems
from assay_schema.printable import printable


class Suite:
    """A list of tests.

    Inconclusive ones are errors if they block, like the command's exit code 3, unless they count as passed or failed.
    Non-blocking ones never fail: they are skipped.
    """

    def __init__(self, inconclusive: Verdict = Verdict.INCONCLUSIVE) -> None:
        self._inconclusive = inconclusive
        self._root = ET.Element("testsuite", name="assay gate")
        self._failures = self._skipped = self._errors = 0

    def add(self, name: str, message: str, verdict: Verdict, stage: Stage = Stage.BLOCK) -> None:
        """Add one test: of a metric, a slice, or the cases."""
        case = ET.SubElement(self._root, "testcase", classname="assay.gate", name=printable(name))
        counted, text = self._inconclusive if verdict is Verdict.INCONCLUSIVE else verdict, printable(message)
        if counted is Verdict.FAIL and stage is Stage.BLOCK:
            self._failures += 1
            ET.SubElement(case, "failure", message=text)
        elif counted is Verdict.INCONCLUSIVE and stage is Stage.BLOCK:
            self._errors += 1
            ET.SubElement(case, "error", message=text)
        elif counted is not Verdict.PASS:
            self._skipped += 1
            ET.SubElement(case, "skipped", message=f"{stage.value}: {text}")
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


def junit(paired: PairedRuns, *, inconclusive: Verdict = Verdict.INCONCLUSIVE) -> str:
    """Return the JUnit XML of a comparison."""
    suite = Suite(inconclusive)
    for problem in problems(paired):
        suite.add("cases", problem, Verdict.FAIL)
    for each in paired.comparison.metrics:
        # A percentile without a verdict decides nothing at any stage.
        stage = Stage.WARN if each.metric in QUANTILES and each.verdict is Verdict.INCONCLUSIVE else each.rule.stage
        suite.add(each.metric, f"{change(each)}: {meaning(each)}", each.verdict, stage)
    sliced: list[SliceCheck | SliceChange] = [*paired.checks, *paired.changes]
    for one in sliced:
        if one.verdict is not None:
            suite.add(one.name, str(one), one.verdict, one.stage)
    return str(suite)
