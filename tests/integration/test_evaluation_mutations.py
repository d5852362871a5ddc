"""Files that somebody damaged, handed to every evaluation command that reads them: an exit code and a line, never a traceback.

`MUTATIONS=50 make test PYTEST="-k mutations"` damages each of them so many times.
"""

import json
import os
import random
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app

COUNT = int(os.environ.get("MUTATIONS", "4"))
#: Longest that an error may be: it names a place, and does not quote the file.
LONGEST = 6_000
TARGET = "def search(query):\n    return {'results': ['a', 'b'], 'answer': 'yes', 'contexts': [{'id': 'a', 'text': 'yes'}]}\n"
PIECES = (
    b"NaN", b"-1", b"1e999", b"null", b"[]", b"{}", b'""', b"true", b"\xff\xfe", b"\x00", b'"\\ud800"', b"[" * 2_000, b"9" * 40,
    b"\n", b"\r\n", b"\t", b",", b":", b"'", b'"', b"\xe2\x80\xa8", b"x" * 50_000, b"=cmd()", b"../../x", b"#",
)  # fmt: skip


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of file that the commands read, each as it should be."""
    folder = tmp_path_factory.mktemp("intact")
    cases = [
        {
            "id": f"c{number}",
            "query": f"question {number}",
            "query_type": ["technical", "actor"][number % 2],
            "graded_relevance": {"a": 3, "b": 1},
            "expected_answer": "yes",
            "required_citations": ["a"],
            "time_window": {"since": "2026-01-01"},
            "tags": ["t"],
            "reviewed": number > 2,
        }
        for number in range(6)
    ]
    header = {"record": "dataset", "version": "1.0.0", "name": "golden"}
    write_lines(folder / "golden.jsonl", [header, *cases])
    write_lines(folder / "older.jsonl", [header | {"version": "0.9"}, *cases[:4]])
    (folder / "golden.json").write_text(json.dumps({"version": "1.0.0", "createdAt": "2026", "cases": cases}, indent=1))
    (folder / "cases.csv").write_text(
        "id,query,expected_ids,tags\n" + "".join(f"{n},what {n}?,a;b,x\n" for n in range(5))
    )
    (folder / "all.qrels").write_text("".join(f"{n} 0 a {n % 4}\n" for n in range(1, 6)))
    (folder / "topics.tsv").write_text("".join(f"{n}\tquestion {n}\n" for n in range(1, 6)))
    (folder / "bm25.run").write_text("".join(f"c{n} Q0 a 1 {n}.5 bm25\n" for n in range(6)))
    known = [
        {"query_id": f"k{n}", "query": f"q {n}", "relevant_slugs": ["a"], "first_relevant_slug": "a"} for n in range(5)
    ]
    (folder / "known.json").write_text(json.dumps({"schema_version": 1, "queries": known}, indent=1))
    write_lines(
        folder / "captured.ndjson",
        [
            {
                "schema_version": 1,
                "id": number,
                "tool_name": "query",
                "query": f"question {number}",
                "retrieved_slugs": ["a", "b"],
                "source_ids": [],
                "latency_ms": 12,
                "created_at": "2026-01-02T03:04:05.000Z",
            }
            for number in range(1, 7)
        ],
    )
    (folder / "mutated_target.py").write_text(TARGET)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for name in ("one", "two"):
            invoked("eval", "run", "--dataset", "golden.jsonl", "--target", "mutated_target:search", "--name", name)
        invoked("bench", "publish", "--from", "captured.ndjson", "--to", "main.baseline.ndjson")
    assert (folder / "main.baseline.ndjson").exists()
    return folder


#: The file that is damaged, and a command that reads it.
READERS: list[tuple[str, tuple[str, ...]]] = [
    ("golden.jsonl", ("dataset", "validate", "golden.jsonl")),
    ("golden.json", ("dataset", "validate", "golden.json", "--json")),
    ("golden.jsonl", ("dataset", "stats", "golden.jsonl")),
    ("golden.jsonl", ("dataset", "diff", "older.jsonl", "golden.jsonl")),
    ("older.jsonl", ("dataset", "merge", "older.jsonl", "golden.jsonl")),
    ("golden.jsonl", ("dataset", "review", "golden.jsonl", "--keep", "c1")),
    ("golden.jsonl", ("dataset", "release", "older.jsonl", "golden.jsonl", "--version", "2", "--note", "n")),
    ("cases.csv", ("dataset", "import", "csv", "cases.csv")),
    ("all.qrels", ("dataset", "import", "trec", "all.qrels", "--queries", "topics.tsv")),
    ("topics.tsv", ("dataset", "import", "trec", "all.qrels", "--queries", "topics.tsv")),
    ("known.json", ("dataset", "import", "qrels", "known.json")),
    ("captured.ndjson", ("dataset", "mine", "--from", "captured.ndjson")),
    (
        "golden.jsonl",
        ("eval", "run", "--dataset", "golden.jsonl", "--target", "mutated_target:search", "--name", "new"),
    ),
    ("bm25.run", ("eval", "import", "bm25.run", "--dataset", "golden.jsonl", "--name", "new")),
    ("runs/one/run.json", ("eval", "list")),
    ("runs/one/run.json", ("eval", "show", "one")),
    ("runs/one/results.ndjson", ("eval", "show", "one", "--json")),
    ("runs/one/run.json", ("eval", "compare", "one", "two", "--html", "report.html", "--junit", "report.xml")),
    ("runs/two/results.ndjson", ("eval", "compare", "one", "two", "--markdown", "report.md")),
    ("runs/one/results.ndjson", ("eval", "report", "one", "--to", "files=out")),
    ("main.baseline.ndjson", ("gate", "--baseline", "main.baseline.ndjson", "--target", "mutated_target:search")),
    ("known.json", ("gate", "--qrels", "known.json", "--target", "mutated_target:search")),
    ("captured.ndjson", ("replay", "--against", "captured.ndjson", "--target", "mutated_target:search")),
    ("captured.ndjson", ("bench", "publish", "--from", "captured.ndjson", "--to", "new.baseline.ndjson")),
]


@pytest.mark.parametrize(
    ("file", "command"), READERS, ids=lambda each: each if isinstance(each, str) else " ".join(each[:2])
)
def test_a_damaged_file_is_a_line_and_never_a_traceback(
    intact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, command: tuple[str, ...]
) -> None:
    rng = random.Random(" ".join((file, *command)))
    whole = (intact / file).read_bytes()
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for number in range(COUNT + 1):
        folder = tmp_path / str(number)
        shutil.copytree(intact, folder)
        monkeypatch.chdir(folder)
        damaged = mutated(whole, rng) if number else whole
        (folder / file).write_bytes(damaged)
        found = CliRunner().invoke(app, list(command))
        told = f"{number}: {damaged[:3_000]!r}\n{found.output[:3_000]}"
        assert found.exception is None or isinstance(found.exception, SystemExit), told
        assert found.exit_code in (0, 1, 2, 3), told
        assert "Traceback" not in found.output, told
        assert number or found.exit_code != 2, told
        if found.exit_code == 2:
            assert len(found.stderr) < LONGEST, told
            assert Path(file).name in found.stderr or Path(file).parent.name in found.stderr, told
        shutil.rmtree(folder)


def mutated(whole: bytes, rng: random.Random) -> bytes:
    """One to three damages: something cut out, put in, doubled, replaced, or exchanged."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(whole) + 1)
        end = min(len(whole), start + rng.choice((1, 1, 2, 5, 20, 200)))
        match rng.randrange(6):
            case 0:
                whole = whole[:start] + whole[end:]
            case 1:
                whole = whole[:start] + rng.choice(PIECES) + whole[start:]
            case 2:
                whole = whole[:end] + whole[start:end] + whole[end:]
            case 3:
                whole = whole[:start] + rng.choice(PIECES) + whole[end:]
            case 4:
                whole = whole[:start] + bytes(rng.randrange(256) for _ in range(end - start)) + whole[end:]
            case _:
                whole = whole[:start]
    return whole


def write_lines(path: Path, records: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def invoked(*command: str) -> Result:
    return CliRunner().invoke(app, list(command))
