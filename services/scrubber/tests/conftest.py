"""Fixtures of the scrubber's tests: the default scrubber, the check of a table row, the labelled corpus."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from assay_scrubber.engine import Scrubber

Check = Callable[[str, str, list[str], str], None]


@pytest.fixture(scope="session")
def scrubber() -> Scrubber:
    return Scrubber()


@pytest.fixture(scope="session")
def check(scrubber: Scrubber) -> Check:
    """check(family, text, what the family finds, in order, the text after all families)."""

    def _check(family: str, text: str, found: list[str], output: str) -> None:
        result = scrubber.scrub(text)
        assert [text[f.start : f.end] for f in result.findings if f.family == family] == found
        assert result.text == output
        assert scrubber.scrub(result.text).text == result.text

    return _check


@pytest.fixture(scope="session")
def scrub_corpus() -> ModuleType:
    """The generator of labelled texts, which the bench uses too."""
    path = Path(__file__).with_name("scrub_corpus.py")
    spec = importlib.util.spec_from_file_location("scrub_corpus", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
