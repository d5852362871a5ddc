"""The search: BM25 with a documented expansion, that may find nothing."""

import pytest

from assay_demo.corpus import Corpus, Document, chunk_id
from assay_demo.search import HITS_PER_SOURCE, Detail, Search
from assay_demo.text import sentences, stem, synonyms, terms, words


def _corpus(texts: dict[str, str]) -> Corpus:
    documents = tuple(
        Document(id=slug, source_id=slug.partition(".")[0], title=slug, text=text, chunk_id=chunk_id(slug))
        for slug, text in sorted(texts.items())
    )
    return Corpus(documents, {document.id: document for document in documents})


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("json.dumps", "json.dumps"),
        ("parse JSON from a string", "json.loads"),
        ("split a string on whitespace", "builtins.str.split"),
        ("calendar weekday", "calendar.weekday"),
        ("get_close_matches", "difflib.get_close_matches"),
    ],
)
def test_a_plain_question_finds_its_document_among_the_first_three(search: Search, query: str, slug: str) -> None:
    assert slug in [hit.document.id for hit in search.search(query, 3).hits]


def test_hits_come_best_first_without_repeats(search: Search) -> None:
    hits = search.search("open a file for reading", 10, "high").hits
    assert len(hits) == 10
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.document.id for hit in hits}) == 10


def test_the_same_question_has_the_same_answer_in_another_index(corpus: Corpus, search: Search) -> None:
    question = "wait for a thread to finish"
    assert Search(corpus).search(question, expand=True) == search.search(question, expand=True)


@pytest.mark.parametrize("query", ["", "   ", "?!", "how do I", "zzyzx qwertyuiopas"])
def test_a_question_without_known_words_finds_nothing(search: Search, query: str) -> None:
    assert search.search(query, expand=True).hits == ()


def test_a_document_that_covers_too_little_of_the_question_is_no_hit() -> None:
    corpus = _corpus({"shop.bread": "Bake bread.", "shop.tea": "Brew tea.", "shop.milk": "Pour milk."})
    question = "bread quantum chromodynamics lattice"
    assert Search(corpus, min_coverage=0.0).search(question).hits[0].document.id == "shop.bread"
    assert Search(corpus, min_coverage=0.5).search(question).hits == ()


@pytest.mark.parametrize("detail", ["low", "medium", "high"])
def test_detail_bounds_the_hits_of_one_module(search: Search, detail: Detail) -> None:
    result = search.search("asyncio event loop", 30, detail)
    from_asyncio = sum(hit.document.source_id == "asyncio" for hit in result.hits)
    bound = HITS_PER_SOURCE[detail]
    assert result.detail_resolved == detail
    assert from_asyncio == bound if bound else from_asyncio > 5


def test_detail_is_resolved_by_the_length_of_the_question(search: Search) -> None:
    assert search.search("parse json").detail_resolved == "medium"
    long = "read several compressed archives, verify checksums, decode headers and write sorted rows into sqlite tables"
    assert search.search(long).detail_resolved == "high"


def test_expansion_finds_what_is_said_in_other_words() -> None:
    corpus = _corpus({"clock.sleep": "Sleep a while.", "clock.tick": "Tick.", "clock.ring": "Ring the bell."})
    plain, expanded = (Search(corpus).search("pause", expand=expand) for expand in (False, True))
    assert (plain.hits, plain.expansion_applied) == ((), False)
    assert ([hit.document.id for hit in expanded.hits], expanded.expansion_applied) == (["clock.sleep"], True)


def test_expansion_is_not_applied_to_words_the_table_does_not_have(search: Search) -> None:
    assert search.search("json decoder", expand=True).expansion_applied is False


def test_identifiers_are_words_and_so_are_their_parts() -> None:
    found = words("Path.read_text JSONDecoder 3.11")
    assert found == ["path", "read_text", "read", "text", "jsondecoder", "json", "decoder", "3.11"]


def test_stopwords_are_no_terms() -> None:
    assert terms("How do I parse the dates?") == [stem("parse"), stem("dates")]


@pytest.mark.parametrize(
    "group",
    [
        ("parse", "parsed", "parses", "parsing"),
        ("stop", "stopped", "stopping", "stops"),
        ("copy", "copies"),
        ("class", "classes"),
    ],
)
def test_forms_of_a_word_have_one_stem(group: tuple[str, ...]) -> None:
    assert {stem(word) for word in group} == {stem(group[0])}


def test_synonyms_are_given_for_each_known_word() -> None:
    assert synonyms("Trim the zebra") == {stem("trim"): (stem("strip"),)}


def test_sentences_are_whole_and_on_one_line() -> None:
    assert sentences("Open it.\nThen\nclose it. See e.g. that.\n\nMore") == [
        "Open it.",
        "Then close it.",
        "See e.g. that.",
        "More",
    ]


def test_a_hit_says_whether_the_words_of_the_question_or_their_synonyms_found_it() -> None:
    corpus = _corpus(
        {"a.delete": "Delete it.", "a.remove": "Remove it.", "a.both": "Remove or delete it.", "a.other": "Read."}
    )
    index = Search(corpus, min_coverage=0.0)
    assert stem("remove") in synonyms("delete")[stem("delete")]
    found = {hit.document.id: hit.found_by for hit in index.search("delete", expand=True).hits}
    assert found == {"a.delete": ("words",), "a.remove": ("synonyms",), "a.both": ("words", "synonyms")}
    assert {hit.found_by for hit in index.search("delete").hits} == {("words",)}
