"""The corpus and its index are read once: they never change."""

import pytest

from assay_demo.corpus import Corpus, load_corpus
from assay_demo.search import Search


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return load_corpus()


@pytest.fixture(scope="session")
def search(corpus: Corpus) -> Search:
    return Search(corpus)
