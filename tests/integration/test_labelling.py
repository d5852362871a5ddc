"""People label a random sample of judged answers in the store, blind, and are compared with each other and with the judge."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_judge.calibration import Confusion
from assay_operations.errors import OperationError
from assay_operations.events.filters import Range
from assay_operations.judging.calibrate import plan_calibration
from assay_operations.labelling.agreement import (
    agreement,
    judge_agreement,
    labels_of,
    progress,
    verdicts_of,
)
from assay_operations.labelling.queues import Queue, item, next_items
from assay_operations.labelling.standing import standing
from assay_operations.labelling.submit import NOTE_CHARS, submit, undo
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_schema.settings import DriftSettings
from tests.support.cli import Cli
from tests.support.redis import RedisServer
from tests.support.sample_rows import FINGERPRINT, answer, lines, score
from tests.support.store import StoreServer

QUEUE = Queue()
ANSWERS = 12


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("answers", "scores", "labels", "calibrations"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


@pytest.fixture
def console(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings("console").store) as client:
        yield client


@pytest.fixture
def judged(owner: Client) -> list[str]:
    """Ids of judged answers of the base stream. The judge calls every third bad."""
    rows = [answer(number, query=f"question {number}") for number in range(ANSWERS)]
    for number, row in enumerate(rows):
        keep(owner, row, faithfulness=0.0 if number % 3 == 0 else 1.0)
    return [row["event_id"] for row in rows]


def keep(owner: Client, row: dict[str, Any], *, stored: bool = True, **fields: Any) -> str:
    if stored:
        insert_json_rows(owner, "assay_base.answers", lines([row]), 1)
    made = score(event_id=row["event_id"], project=row["project"], **fields)
    insert_json_rows(owner, "assay_base.scores", lines([made]), 1)
    return str(row["event_id"])


def put(migrated: StoreServer, client: Client, event: str, label: str, who: str = "ana", **more: Any) -> None:
    submit(client, migrated.settings("console").store, more.pop("queue", QUEUE), who, event, label, **more)


def ids(client: Client, who: str = "ana", queue: Queue = QUEUE, count: int = 100) -> list[str]:
    return [each.event_id for each in next_items(client, queue, who, count=count)]


def stored(owner: Client, columns: str = "label, labeller, note, withdrawn") -> list[tuple[Any, ...]]:
    return [
        tuple(row) for row in owner.query(f"SELECT {columns} FROM assay_base.labels ORDER BY stored_at").result_rows
    ]


def test_the_sample_is_of_scored_base_answers_in_an_order_that_is_the_same_for_everybody(
    owner: Client, console: Client, judged: list[str]
) -> None:
    keep(owner, answer(101), faithfulness=1.0, base=False)
    keep(owner, answer(102), status="abstained")
    keep(owner, answer(103), faithfulness=1.0, stored=False)
    keep(owner, answer(104, project="shop"), faithfulness=1.0)
    keep(owner, answer(105, days_old=3), faithfulness=1.0)
    recent = Queue(span=Range(int(time.time() * 1000) - 86_400_000))
    assert sorted(ids(console, queue=recent)) == sorted(judged)
    assert ids(console, queue=recent) == ids(console, "bob", queue=recent) == ids(console, queue=recent)
    assert ids(console, count=5) == ids(console)[:5]
    assert ids(console, queue=Queue(name="other")) != ids(console)
    assert ids(console) != sorted(ids(console))


def test_a_new_answer_does_not_move_the_others(owner: Client, console: Client, judged: list[str]) -> None:
    before = ids(console)
    later = keep(owner, answer(500), faithfulness=1.0)
    assert [event for event in ids(console) if event != later] == before


def test_a_labelled_answer_leaves_the_queue_of_its_labeller_alone(
    migrated: StoreServer, console: Client, judged: list[str]
) -> None:
    first, second = ids(console, count=2)
    put(migrated, console, first, "good")
    assert ids(console, count=1) == [second]
    assert ids(console, "bob", count=1) == [first]
    assert first in ids(console, queue=Queue(name="other"))


def test_an_item_shows_what_is_labelled_and_no_verdict_until_it_is(
    migrated: StoreServer, console: Client, judged: list[str]
) -> None:
    (shown,) = next_items(console, QUEUE, "ana")
    assert (shown.query[:9], shown.answer) == ("question ", "Run the rotation job.")
    assert [(passage.id, passage.text) for passage in shown.passages] == [("c1", "The rotation job ...")]
    put(migrated, console, shown.event_id, "bad", "bob")
    for blind in (shown, item(console, QUEUE, "ana", shown.event_id)):
        assert (blind.label, blind.verdicts) == (None, ())
        assert "faithfulness" not in repr(blind)
        assert FINGERPRINT not in repr(blind)
    put(migrated, console, shown.event_id, "good", note="as the passage says")
    open_ = item(console, QUEUE, "ana", shown.event_id)
    assert open_.label
    assert (open_.label.label, open_.label.note) == ("good", "as the passage says")
    assert [(one.fingerprint, set(one.metrics)) for one in open_.verdicts] == [(FINGERPRINT, {"faithfulness"})]
    assert item(console, Queue(name="other"), "ana", shown.event_id).verdicts == ()


def test_a_label_replaces_the_one_before_and_both_are_kept(
    migrated: StoreServer, owner: Client, console: Client, judged: list[str]
) -> None:
    put(migrated, console, judged[0], "good")
    put(migrated, console, judged[0], "bad")
    assert labels_of(console, QUEUE) == {judged[0]: {"ana": "bad"}}
    (first, none), (_, superseded) = stored(owner, "label_id, supersedes")
    assert (none, superseded) == (None, first)
    (arrived, of_label) = owner.query(
        "SELECT (SELECT any(created_at) FROM answers WHERE event_id = {e:UUID}), any(created_at) FROM labels",
        parameters={"e": judged[0]},
    ).result_rows[0]
    assert arrived == of_label


def test_a_label_that_is_submitted_twice_counts_once(
    migrated: StoreServer, owner: Client, console: Client, judged: list[str]
) -> None:
    key = new_event_id()
    put(migrated, console, judged[0], "good", label_id=key)
    put(migrated, console, judged[0], "good", label_id=key)
    assert len(stored(owner)) == 1


def test_undo_takes_the_last_label_back_and_puts_the_answer_into_the_queue_again(
    migrated: StoreServer, owner: Client, console: Client, judged: list[str]
) -> None:
    settings, order = migrated.settings("console").store, ids(console)
    for event in order[:3]:
        put(migrated, console, event, "good", note="first thought")
    assert undo(console, settings, QUEUE, "ana").event_id == order[2]
    assert undo(console, settings, QUEUE, "ana", order[0]).event_id == order[0]
    assert ids(console) == [order[0], *order[2:]]
    assert [row[3] for row in stored(owner)] == [False, False, False, True, True]
    assert item(console, QUEUE, "ana", order[0]).verdicts == ()
    assert undo(console, settings, QUEUE, "ana").event_id == order[1]
    for nothing in ("", order[1], order[5]):
        with pytest.raises(OperationError, match="ana has no label to take back"):
            undo(console, settings, QUEUE, "ana", nothing)
    put(migrated, console, order[0], "bad")
    assert labels_of(console, QUEUE) == {order[0]: {"ana": "bad"}}


def test_notes_are_scrubbed(migrated: StoreServer, owner: Client, console: Client, judged: list[str]) -> None:
    put(migrated, console, judged[0], "bad", note="ask jane.doe@example.com\nfirst")
    [(_, _, note, _)] = stored(owner)
    assert "jane.doe" not in note
    assert note.startswith("ask ")
    assert "\n" not in note


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"label": "fine"}, "good, bad or unsure"),
        ({"who": ""}, "name of a person"),
        ({"who": "x" * 129}, "name of a person"),
        ({"who": "a\u202eb"}, "name of a person"),
        ({"event": "x"}, "UUIDv7"),
        ({"event": "00000000-0000-4000-8000-000000000000"}, "UUIDv7"),
        ({"event": new_event_id()}, "no judged answer"),
        ({"note": "n" * (NOTE_CHARS + 1)}, "2,000 characters"),
        ({"label_id": "1"}, "UUIDv7"),
    ],
)
def test_a_wrong_label_is_refused_with_the_reason(
    migrated: StoreServer, owner: Client, console: Client, judged: list[str], wrong: dict[str, str], message: str
) -> None:
    given = {"event": judged[0], "label": "good", "who": "ana"} | wrong
    event, label = given.pop("event"), given.pop("label")
    with pytest.raises(OperationError, match=message):
        put(migrated, console, event, label, **given)
    assert stored(owner) == []


@pytest.mark.parametrize("names", [{"project": "../x"}, {"name": ""}, {"name": "a b"}, {"name": "x" * 65}])
def test_a_queue_has_the_name_of_one(names: dict[str, str]) -> None:
    with pytest.raises(OperationError, match="letters, digits"):
        Queue(**names)  # type: ignore[arg-type]


@pytest.mark.parametrize("sampled", [{"base": False}, {"status": "abstained"}, {"project": "shop"}])
def test_only_answers_of_the_sample_are_labelled(
    migrated: StoreServer, owner: Client, console: Client, sampled: dict[str, Any]
) -> None:
    project = sampled.pop("project", "default")
    value = None if "status" in sampled else 1.0
    event = keep(owner, answer(1, project=project), faithfulness=value, **sampled)
    with pytest.raises(OperationError, match="no judged answer"):
        put(migrated, console, event, "good")


def test_progress_counts_labels_by_person(migrated: StoreServer, console: Client, judged: list[str]) -> None:
    assert progress(console, QUEUE).labellers == ()
    for event, label in zip(judged, ("good", "good", "bad", "unsure"), strict=False):
        put(migrated, console, event, label)
    put(migrated, console, judged[0], "bad", "bob")
    found = progress(console, QUEUE)
    assert found.answers == ANSWERS
    assert [(one.name, one.good, one.bad, one.unsure, one.labelled) for one in found.labellers] == [
        ("ana", 2, 1, 1, 4),
        ("bob", 0, 1, 0, 1),
    ]


def test_two_labellers_are_compared_where_both_are_sure(
    migrated: StoreServer, console: Client, judged: list[str]
) -> None:
    none = agreement(console, QUEUE, "ana", "bob")
    assert (none.n, none.agreement, none.kappa) == (0, None, None)
    ana = ["good", "good", "good", "bad", "bad", "unsure", "good"]
    bob = ["good", "good", "bad", "bad", "bad", "good"]
    for event, label in zip(judged, ana, strict=False):
        put(migrated, console, event, label)
    for event, label in zip(judged, bob, strict=False):
        put(migrated, console, event, label, "bob")
    found = agreement(console, QUEUE, "ana", "bob")
    expected = Confusion(true_positives=2, false_negatives=1, false_positives=0, true_negatives=2)
    assert (found.n, found.agreement, found.unsure, found.differ) == (5, 0.8, 1, (judged[2],))
    assert found.kappa == expected.kappa_interval
    assert found.kappa
    assert found.kappa.low < found.kappa.value <= found.kappa.high <= 1


def test_the_majority_of_people_decides_and_a_tie_does_not_count() -> None:
    labels = {
        "a": {"ana": "good", "bob": "good", "eve": "bad"},
        "b": {"ana": "good", "bob": "bad"},
        "c": {"ana": "unsure", "bob": "bad"},
        "d": {"ana": "unsure"},
    }
    found = verdicts_of(labels)
    assert (found.labels, found.tied, found.unsure) == ({"a": True, "c": False}, 1, 1)
    assert found.labellers == ("ana", "bob", "eve")
    alone = verdicts_of(labels, "ana")
    assert (alone.labels, alone.tied, alone.unsure, alone.labellers) == ({"a": True, "b": True}, 0, 2, ("ana",))
    assert verdicts_of(labels, "nobody").labels == {}


@pytest.fixture
def labelled(migrated: StoreServer, console: Client, judged: list[str]) -> dict[str, bool]:
    """Labels of all answers: people disagree with the judge on the first two."""
    people = {event: number % 3 != 0 for number, event in enumerate(judged)} | {judged[0]: True, judged[1]: False}
    for event, good in people.items():
        put(migrated, console, event, "good" if good else "bad")
    return people


def test_stored_labels_are_compared_with_the_judge_as_those_of_a_file(
    migrated: StoreServer, console: Client, tmp_path: Path, labelled: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judge_agreement(console, tmp_path, DriftSettings(), QUEUE)
    assert found.confusion == Confusion(true_positives=7, false_negatives=1, false_positives=1, true_negatives=3)
    monkeypatch.setenv("ASSAY_CONFIG", str(Cli(tmp_path, store_url=migrated.url).settings_file("owner")))
    of_file = plan_calibration(tmp_path, labelled)
    for name in ("kappa", "tpr", "tpr_low", "tnr", "tnr_high", "rectifier"):
        assert found.row[name] == of_file.row[name]
    assert (found.rates, found.lacks, found.live) == (of_file.rates, of_file.lacks, ANSWERS)
    with pytest.raises(OperationError, match="0 of 0 labelled answers"):
        judge_agreement(console, tmp_path, DriftSettings(), Queue(name="other"))


class Recorded:
    """A client that notes the size of each answer and its SQL."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.answers: list[tuple[str, int]] = []

    def query(self, sql: str, **options: Any) -> Any:
        answer = self._client.query(sql, **options)
        self.answers.append((sql, len(answer.result_set)))
        return answer

    def of_verdicts(self) -> list[int]:
        return [size for sql, size in self.answers if "base_probability" in sql]


def test_verdicts_are_read_only_once_enough_answers_are_labelled_and_are_counted_in_the_store(
    migrated: StoreServer, owner: Client, console: Client, judged: list[str]
) -> None:
    drift = DriftSettings.model_validate({"calibration_labels": 3})
    for place, (label, enough) in enumerate((("good", False), ("bad", False), ("unsure", False), ("good", True))):
        put(migrated, console, judged[place], label)
        recorded = Recorded(console)
        found = standing(recorded, QUEUE, drift)  # type: ignore[arg-type]
        assert (found.calibration is not None) is enough, found.why
        assert bool(recorded.of_verdicts()) is enough
    assert found.calibration is not None
    assert found.calibration.live == ANSWERS
    labelled, live = recorded.of_verdicts()
    assert (labelled, live) == (3, 2), "one line for the good verdicts, one for the bad"


def test_the_judge_is_calibrated_by_stored_labels(
    migrated: StoreServer, owner: Client, tmp_path: Path, redis_server: RedisServer, labelled: dict[str, bool]
) -> None:
    cli = Cli(tmp_path, store_url=migrated.url, redis_url=redis_server.url)
    dry = cli.call("judge", "calibrate", "--stored", "--dry-run", "--json", role="owner")
    assert dry.returncode == 1, dry.stderr  # too few labels for critical alerts
    assert b"12 labels of the queue default by ana" in dry.stderr
    file = tmp_path / "ana.ndjson"
    file.write_text(
        "".join(
            json.dumps({"event_id": event, "label": "good" if good else "bad"}) + "\n"
            for event, good in labelled.items()
        )
    )
    of_file = cli.call("judge", "calibrate", "--labels", str(file), "--dry-run", "--json", role="owner")
    differ = {"calibration_id", "calibrated_at"}
    stored_row, file_row = json.loads(dry.stdout), json.loads(of_file.stdout)
    assert {k: v for k, v in stored_row.items() if k not in differ} == {
        k: v for k, v in file_row.items() if k not in differ
    }
    assert owner.query("SELECT count() FROM calibrations").result_rows == [(0,)]
    assert cli.call("judge", "calibrate", "--stored", role="owner").returncode == 1
    assert owner.query("SELECT labels, kappa FROM calibrations").result_rows == [(12, stored_row["kappa"])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], b"name a file with --labels"),
        (["--labels", "x", "--stored"], b"name a file with --labels"),
        (["--stored", "--second", "x"], b"--second is only for --labels"),
        (["--stored", "--queue", "empty"], b"no answer is labelled good or bad in the queue empty"),
        (["--stored", "--queue", "a b"], b"the name of a queue"),
        (["--stored", "--labeller", "nobody"], b"by nobody"),
    ],
)
def test_calibrate_says_which_labels_it_needs(
    migrated: StoreServer, owner: Client, tmp_path: Path, arguments: list[str], message: bytes
) -> None:
    done = Cli(tmp_path, store_url=migrated.url).call("judge", "calibrate", *arguments, role="owner")
    assert done.returncode == 2
    assert message in done.stderr
