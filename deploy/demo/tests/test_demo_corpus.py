"""The corpus: real documentation, read without running it, the same every time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay_demo.corpus import Corpus, chunk_id
from assay_demo.sources import parse_module

DEMO = Path(__file__).resolve().parents[1]
SLUG = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*")


@pytest.mark.slow
def test_the_corpus_has_thousands_of_documents(corpus: Corpus) -> None:
    assert len(corpus) > 5000


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, Any]:
    """What another process, with another hash seed, reads; which modules it imported by that; and what it printed."""
    program = (
        "import json, sys\n"
        "from assay_demo.corpus import load_corpus\n"
        "documents = [[d.id, d.title, d.text, d.chunk_id] for d in load_corpus().documents]\n"
        "print(json.dumps({'documents': documents, 'modules': list(sys.modules)}))"
    )
    env = {**os.environ, "PYTHONPATH": str(DEMO), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", program]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    return {**json.loads(out.stdout), "stderr": out.stderr}


def test_another_process_reads_the_same_corpus(corpus: Corpus, elsewhere: dict[str, Any]) -> None:
    here = [[document.id, document.title, document.text, document.chunk_id] for document in corpus.documents]
    assert elsewhere["documents"] == here


def test_reading_imports_none_of_the_modules_it_parses(elsewhere: dict[str, Any]) -> None:
    parsed_only = {"antigravity", "this", "turtle", "imaplib", "smtplib", "asyncio", "xmlrpc", "idlelib", "webbrowser"}
    assert parsed_only & set(elsewhere["modules"]) == set()
    assert elsewhere["stderr"] == ""


def test_slugs_are_dotted_public_names_in_order(corpus: Corpus) -> None:
    slugs = [document.id for document in corpus.documents]
    assert slugs == sorted(set(slugs))
    assert [slug for slug in slugs if not SLUG.fullmatch(slug)] == []


def test_a_document_names_its_top_module_as_its_source(corpus: Corpus) -> None:
    assert {document.source_id for document in corpus.documents} == {slug.partition(".")[0] for slug in corpus.by_slug}
    assert corpus.by_slug["os.path.join"].source_id == "os"


def test_chunk_ids_are_distinct_and_fit_a_signed_32_bit_integer(corpus: Corpus) -> None:
    ids = [document.chunk_id for document in corpus.documents]
    assert len(set(ids)) == len(ids)
    assert all(0 <= number < 2**31 for number in ids)
    assert chunk_id("json.dumps") == corpus.by_slug["json.dumps"].chunk_id == 473892928


@pytest.mark.parametrize(
    ("slug", "phrase"),
    [
        ("json.dumps", "JSON formatted"),
        ("json.JSONDecoder", "Simple JSON"),
        ("asyncio.wait_for", "TimeoutError"),
        ("collections.deque.rotate", "Rotate the deque"),
        ("builtins.str.split", "separator"),
        ("datetime.date.strftime", "strftime"),
        ("concurrent.futures.ThreadPoolExecutor", "max_workers"),
        ("unittest.TestCase.assertRaises", "exception"),
        ("collections.abc.Mapping", "Mapping"),
        ("pathlib.Path.exists", "exists"),
        ("os.path.getmtime", "modification time"),
        ("socket.socket.recv", "Receive"),
        ("asyncio.create_subprocess_exec", "Coroutine function"),
    ],
)
def test_a_document_is_found_by_its_documented_name(corpus: Corpus, slug: str, phrase: str) -> None:
    assert phrase.lower() in corpus.by_slug[slug].text.lower()


@pytest.mark.parametrize("skipped", ["antigravity", "this", "idlelib", "test", "tkinter", "lib2to3", "__phello__"])
def test_what_is_not_documentation_is_left_out(corpus: Corpus, skipped: str) -> None:
    assert [slug for slug in corpus.by_slug if slug.partition(".")[0] == skipped] == []


def test_no_document_repeats_another_under_a_longer_name(corpus: Corpus) -> None:
    assert "json.decoder.JSONDecoder" not in corpus
    assert "typing.Text.split" not in corpus


def test_a_source_file_yields_signatures_raises_and_deprecations() -> None:
    module = parse_module(
        "shop",
        '''
"""A shop."""
import warnings
__all__ = ["buy"]
def buy(item, /, *, price=1):
    """Buy it."""
    if price < 0:
        raise ValueError("price")
    def inner():
        raise KeyError
class Till:
    """A till."""
    def __init__(self, cash=0): pass
    def open(self, key):
        """Open it."""
        warnings.warn("Till.open() is deprecated, use unlock()", DeprecationWarning)
    @property
    def cash(self):
        """What is in it."""
    def _count(self):
        """Private."""
''',
    )
    buy, till = module.symbols["buy"], module.symbols["Till"]
    assert (module.doc, sorted(module.exports)) == ("A shop.", ["buy"])
    assert (buy.signature, buy.doc, buy.raises) == ("(item, /, *, price=1)", "Buy it.", ("ValueError",))
    assert (till.signature, sorted(till.members)) == ("(cash=0)", ["cash", "open"])
    assert (till.members["open"].signature, till.members["cash"].kind) == ("(key)", "property")
    assert till.members["open"].deprecated == "Till.open() is deprecated, use unlock()"
