"""The report page in a real browser: it is drawn, asks nobody for anything, and has no script to run."""

import json
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from assay_evals.compare.compare_runs import PairedRuns, compare_runs
from assay_evals.compare.verdicts import Verdict
from assay_evals.dataset.file_format import read_dataset
from assay_evals.report.html import html
from assay_evals.run.case_results import case_result, score
from assay_evals.run.model import Run, RunConfig
from assay_evals.target.response import TargetResponse
from tests.programs import found, lacking

CHROMIUM = found("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=lacking("chromium"))

#: Reads what a person would see, from the page as the browser laid it out.
PROBE = """
<script>
const box = e => { const r = e.getBoundingClientRect(); return [r.width, r.height] };
const seen = {
  title: document.title,
  heading: document.querySelector('h1').innerText,
  chart: box(document.querySelector('svg')),
  marks: [...document.querySelectorAll('svg :is(circle, polygon)')].map(box),
  rows: document.querySelectorAll('table')[0].rows.length,
  pairs: [...document.querySelectorAll('.cols')].map(e => e.children.length),
  wide: document.documentElement.scrollWidth > innerWidth,
  styled: getComputedStyle(document.querySelector('.verdict')).borderLeftStyle,
  asked: performance.getEntriesByType('resource').length,
};
const out = document.createElement('pre'); out.id = 'probe'; out.textContent = JSON.stringify(seen); document.body.append(out);
</script>
"""


def paired() -> PairedRuns:
    cases = read_dataset((resources.files("assay_demo") / "golden.jsonl").read_text()).cases[:60]

    def run(label: str, keep: int) -> Run:
        config = RunConfig("golden", "1.0.0", "f", "t", label=label)
        answers = [TargetResponse([*list(case.relevance)[:keep], "<other>"], 10.0) for case in cases]
        rows = score(cases, answers, config)
        results = [case_result(case, answer, row, 1) for case, answer, row in zip(cases, answers, rows, strict=True)]
        return Run(label, config, "2026-11-22T00:00:00+00:00", None, results)

    return compare_runs(run("main", 5), run("change <b>", 0))


def drawn(tmp_path: Path, page: str, width: int = 1100) -> str:
    """The page as the browser has it in the end, its scripts run."""
    file = tmp_path / "report.html"
    file.write_text(page)
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    done = subprocess.run(
        [*command, f"--window-size={width},2000", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "</html>" in done.stdout, done.stderr[-500:]
    return done.stdout


def with_probe(page: str) -> str:
    return page.replace("</body>", PROBE + "</body>")


def test_a_browser_runs_no_script_in_a_report(tmp_path: Path) -> None:
    assert 'id="probe"' not in drawn(tmp_path, with_probe(html(paired(), Verdict.FAIL)))


@pytest.mark.parametrize("width", [400, 1100])
def test_a_browser_draws_the_report_whole_and_asks_nobody(tmp_path: Path, width: int) -> None:
    found = paired()
    policy = "default-src 'none';"
    page = html(found, Verdict.FAIL)
    assert policy in page
    shown = drawn(tmp_path, with_probe(page.replace(policy, f"{policy} script-src 'unsafe-inline';")), width)
    assert 'id="probe"' in shown
    text = shown.rpartition('id="probe">')[2].partition("</pre>")[0]
    seen = json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert (seen["title"], seen["heading"]) == ("Evaluation: fail", "Evaluation: fail")
    assert seen["asked"] == 0
    assert seen["styled"] == "solid", "the content policy allows the page's own stylesheet"
    shares = [each for each in found.comparison.metrics if not each.metric.endswith("_ms")]
    assert len(seen["marks"]) == len(shares)
    assert min(side for mark in [*seen["marks"], seen["chart"]] for side in mark) > 0
    assert seen["rows"] == len(found.comparison.metrics) + 1
    assert set(seen["pairs"]) == {2}
    assert not seen["wide"], "nothing sticks out of the window"
