"""Names of runs that get none."""

from pathlib import Path

import pytest

from assay_evals.run.folder import RUN_FILE
from assay_operations.evaluations import runs
from assay_operations.evaluations.runs import free_name


class _SameSecond:
    @staticmethod
    def now(_zone: object) -> "_SameSecond":
        return _SameSecond()

    def strftime(self, _form: str) -> str:
        return "20260102T030405Z"


def test_runs_that_begin_in_the_same_second_have_different_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "datetime", _SameSecond)
    names = []
    for _ in range(3):
        names.append(free_name(None, tmp_path, resume=False))
        (tmp_path / names[-1]).mkdir()
        (tmp_path / names[-1] / RUN_FILE).write_text("{}")
    assert names == ["20260102T030405Z", "20260102T030405Z-2", "20260102T030405Z-3"]
