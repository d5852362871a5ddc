"""Kept replies: the same question gives the same reply, to who has the key; whatever else lies there is a miss."""

import json
from pathlib import Path

import pytest

from assay_judge.api import Prompt
from assay_operations.evaluations.judge_cache import JudgeCache, Kept, cache_in

PROMPT = Prompt("system", "message", {"type": "object"})
KEPT = Kept('{"claims": ["Zoë lives in Graz"]}', 1_234)


def entry(folder: Path) -> Path:
    return next(path for path in folder.rglob("*") if path.is_file())


def test_what_was_kept_is_found_by_another_process_with_the_same_key(tmp_path: Path) -> None:
    cache = JudgeCache(tmp_path / "cache", "key")
    name = cache.name_of("judge", PROMPT, 100, 0)
    assert cache.get(name) is None
    cache.put(name, KEPT)
    again = JudgeCache(tmp_path / "cache", "key")
    assert again.get(again.name_of("judge", PROMPT, 100, 0)) == KEPT


def test_each_part_of_what_is_asked_names_another_entry(tmp_path: Path) -> None:
    cache = JudgeCache(tmp_path, "key")
    asked = [
        ("judge", PROMPT, 100, 0),
        ("other", PROMPT, 100, 0),
        ("judge", PROMPT._replace(system="systemm"), 100, 0),
        ("judge", PROMPT._replace(system="systemmess", message="age"), 100, 0),
        ("judge", PROMPT._replace(message="other"), 100, 0),
        ("judge", PROMPT._replace(schema={}), 100, 0),
        ("judge", PROMPT, 101, 0),
        ("judge", PROMPT, 100, 1),
    ]
    names = {cache.name_of(*each) for each in asked}
    names |= {JudgeCache(tmp_path, "key2").name_of(*each) for each in asked}
    assert len(names) == 2 * len(asked)


def test_an_entry_says_nothing_without_the_key_and_is_its_owners_alone(tmp_path: Path) -> None:
    cache = JudgeCache(tmp_path / "cache", "key")
    name = cache.name_of("judge", PROMPT, 100, 0)
    cache.put(name, KEPT)
    found = entry(tmp_path)
    assert not any(word in found.read_bytes() for word in (b"Graz", b"claims", b"text"))
    assert found.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    first = found.read_bytes()
    cache.put(name, KEPT)
    assert found.read_bytes() != first, "no two entries lie under the same pad"


def test_an_entry_of_another_key_or_under_another_name_is_none(tmp_path: Path) -> None:
    mine, foreign = (JudgeCache(tmp_path / each, each) for each in ("mine", "foreign"))
    name = mine.name_of("judge", PROMPT, 100, 0)
    foreign.put(name, Kept('{"claims": []}', 0))
    there = tmp_path / "mine" / name[:2]
    there.mkdir(parents=True)
    (there / name).write_bytes(entry(tmp_path / "foreign").read_bytes())
    assert mine.get(name) is None
    other = mine.name_of("judge", PROMPT, 100, 1)
    mine.put(other, KEPT)
    (there / name).write_bytes((tmp_path / "mine" / other[:2] / other).read_bytes())
    assert mine.get(name) is None


def test_a_changed_entry_is_none_wherever_it_was_changed(tmp_path: Path) -> None:
    cache = JudgeCache(tmp_path, "key")
    name = cache.name_of("judge", PROMPT, 100, 0)
    cache.put(name, KEPT)
    file = entry(tmp_path)
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert cache.get(name) is None
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert cache.get(name) is None
    file.write_bytes(whole)
    assert cache.get(name) == KEPT


@pytest.mark.parametrize("kind", ["file", "folder", "link", "unwritable"])
def test_what_cannot_be_read_or_written_is_a_miss(tmp_path: Path, kind: str) -> None:
    cache = JudgeCache(tmp_path / "cache", "key")
    name = cache.name_of("judge", PROMPT, 100, 0)
    path = tmp_path / "cache" / name[:2] / name
    if kind == "file":
        (tmp_path / "cache").write_text("not a folder")
    elif kind == "folder":
        path.mkdir(parents=True)
    elif kind == "link":
        path.parent.mkdir(parents=True)
        cache.put(name, KEPT)
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        assert cache.get(name) is None
        return
    else:
        path.parent.mkdir(parents=True)
        path.parent.chmod(0o500)
        (path.parent.parent / f"{name[:2]}.x").write_text(json.dumps(1))
    cache.put(name, KEPT)
    assert cache.get(name) in (None, KEPT)  # root may write anywhere


def test_hits_misses_and_what_was_saved_are_counted(tmp_path: Path) -> None:
    cache = JudgeCache(tmp_path, "key")
    for kept in (None, KEPT, None, KEPT):
        cache.count(kept)
    assert (cache.hits, cache.misses, cache.saved) == (2, 2, 2 * KEPT.nano)


def test_without_a_key_there_is_none(tmp_path: Path) -> None:
    assert cache_in(tmp_path, "") is None
    assert cache_in(tmp_path, "key") is not None
