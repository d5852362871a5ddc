"""`assay judge` against a real store and Redis: what it shows, what it keeps, what it judges again."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis

from assay_judge import lexical
from assay_judge.backends import judge_of
from assay_judge.lexical_score import lexical_score
from assay_judge.sampling import Draw
from assay_operations.actor import local_actor
from assay_operations.errors import OperationError
from assay_operations.judging import calibrate
from assay_operations.judging.calibrate import Calibration, plan_calibration
from assay_operations.judging.calibrate import apply as apply_calibration
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.alerts import AlertKind
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import JudgeSettings
from assay_schema.streams import SCORES, calibration_key
from assay_schema.validation import parse_scrubbed
from assay_writer.rows import COLUMNS, alert_row, event_row, score_row
from tests.support.alert_samples import episode
from tests.support.answers import answer_bytes
from tests.support.anthropic_server import KEY, AnthropicServer, verdict
from tests.support.cli import Cli
from tests.support.openai_server import OpenAiServer
from tests.support.redis import RedisServer
from tests.support.sample_rows import by_column, lines
from tests.support.store import StoreServer

pytestmark = [pytest.mark.one_day]

DRAWN = {"base": True, "inclusion_probability": 0.5, "base_probability": 0.05}


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("answers", "scores", "calibrations"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


@pytest.fixture
def cli(tmp_path: Path, migrated: StoreServer, redis_server: RedisServer) -> Cli:
    return Cli(tmp_path, store_url=migrated.url, redis_url=redis_server.url)


def scored(value: float, status: str = "scored", **more: Any) -> tuple[bytes, dict[str, Any]]:
    """An answer, and the score it got."""
    data = answer_bytes(project="default")
    event = orjson.loads(data)
    judge = lexical.judge()
    score = {name: event[name] for name in ("event_id", "project", "service")} | DRAWN
    score |= {"score_id": event["event_id"], "judged_at": event["created_at"], "status": status}
    score |= {"fingerprint": judge.fingerprint, "backend": "lexical", "model": judge.model}
    score |= {
        "prompt_hash": judge.prompt_hash,
        "schema_hash": judge.schema_hash,
        "boosts": ["weak"],
        "checks": {"ok": True},
    }
    return data, score | {"metrics": {"faithfulness": value} if status == "scored" else {}} | more


def keep(owner: Client, pairs: list[tuple[bytes, dict[str, Any]]]) -> None:
    for data, score in pairs:
        insert_json_rows(owner, "assay_base.answers", event_row(data)[1], 1, COLUMNS["answers"])
        insert_json_rows(owner, "assay_base.scores", score_row(orjson.dumps(score))[1], 1, COLUMNS["scores"])


def test_status_and_cost_count_by_project_and_judge(cli: Cli, owner: Client) -> None:
    keep(owner, [scored(1.0, cost_usd=0.25), scored(0.5), scored(0, "skipped_budget"), scored(0, "not_sampled")])
    done = cli.run("judge", "status", "--json", role="sre")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["sampled"], row["scored"], row["skipped_budget"], row["faithfulness"]) == (3, 2, 1, 0.75)
    spent = json.loads(cli.call("judge", "cost", "--json", role="sre").stdout)
    assert (spent["judged"], spent["skipped_budget"], spent["cost_usd"]) == (2, 1, 0.25)
    assert b"lexical" in cli.call("judge", "status", role="sre").stdout


def test_too_many_judge_errors_are_a_finding(cli: Cli, owner: Client) -> None:
    keep(owner, [scored(1.0), scored(0, "judge_error")])
    assert cli.call("judge", "status", role="sre").returncode == 1


def test_the_doctor_says_why_answers_have_no_verdict_and_when_judging_stopped(cli: Cli, owner: Client) -> None:
    def found() -> dict[str, str]:
        done = cli.call("doctor", "--json", role="owner")
        (judging,) = [each for each in json.loads(done.stdout) if each["check"] == "judging"]
        return dict(judging)

    owner.command("TRUNCATE TABLE assay_base.alerts")
    assert (found()["status"], found()["summary"]) == ("ok", "no answer was judged in 24 hours")
    keep(owner, [scored(1.0) for _ in range(3)] + [scored(0, "judge_error", detail="Http503") for _ in range(2)])
    assert (found()["status"], found()["summary"]) == ("ok", "3 of the last 5 answers that needed a verdict have one")
    keep(owner, [scored(0, "judge_error", detail="ReplyNotJson") for _ in range(3)] + [scored(0, "no_context")])
    assert found()["status"] == "warn"
    assert found()["summary"] == (
        "5 of the last 8 answers that needed a verdict have none: the reply was not JSON (judge.model, judge.json_mode): 3, "
        "the API was busy or failed: 2"
    )
    stopped = {
        "kind": AlertKind.JUDGE_STOPPED,
        "project": "all",
        "service": None,
        "metric": None,
        "summary": "Judging stopped: X.",
    }
    begun, *_, ended = [alert.model_copy(update=stopped) for alert in episode()]
    insert_json_rows(
        owner, "assay_base.alerts", lines([by_column(*alert_row(begun.model_dump_json().encode())[:2])]), 1
    )
    assert (found()["status"], found()["summary"]) == ("warn", "Judging stopped: X.")
    insert_json_rows(
        owner, "assay_base.alerts", lines([by_column(*alert_row(ended.model_dump_json().encode())[:2])]), 1
    )
    assert "have none" in found()["summary"]


def test_calibration_is_shown_kept_and_told_to_drift(
    cli: Cli, owner: Client, tmp_path: Path, redis_server: RedisServer
) -> None:
    pairs = [scored(1.0) for _ in range(62)] + [scored(0.5) for _ in range(18)]
    boosted = scored(0.5, base=False)
    keep(owner, [*pairs, boosted])
    people = [True] * 61 + [False] + [False] * 18
    lines = [
        json.dumps({"event_id": score["event_id"], "label": "good" if good else "bad"})
        for (_, score), good in zip([*pairs, boosted], [*people, True], strict=True)
    ]
    file = tmp_path / "labels.ndjson"
    file.write_text("\n".join(lines))
    done = cli.call("judge", "calibrate", "--labels", str(file), "--json", role="owner")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    counts = [found[name] for name in ("true_positives", "false_negatives", "false_positives", "true_negatives")]
    assert counts == [61, 0, 1, 18], "what a rule boosted is not counted"
    assert found["kappa"] == pytest.approx(0.9649, abs=1e-3)
    assert found["rates"]["ppi"]["value"] == pytest.approx(62 / 80 - 1 / 84)
    assert (found["pages"], found["lacks"]) == (True, [])
    audit = (
        "SELECT outcome, identity, planned, changed, JSONExtractString(target, 'metric') FROM operations"
        " WHERE operation = 'judge calibrate' AND JSONExtractUInt(target, 'labels') = 80"
    )
    assert owner.query(audit).result_rows == [("done", "owner", 1, 1, "faithfulness")]
    kept = owner.query("SELECT labels, kappa, pages FROM calibrations").result_rows
    assert [tuple(row) for row in kept] == [(80, pytest.approx(0.9649, abs=1e-3), True)]
    with redis_server.client() as client:
        told = client.hget(calibration_key(), f"default/{lexical.judge().fingerprint}/faithfulness")
    assert json.loads(told)["tnr"] == pytest.approx(18 / 19)
    text = cli.call("judge", "calibrate", "--labels", str(file), "--dry-run", role="owner").stdout.decode()
    assert "Cohen's kappa          0.965" in text
    assert "80 of 81 labelled answers are in the base stream" in text
    assert "PPI (published)" in text


def test_a_calibration_by_two_labels_says_what_it_lacks(cli: Cli, owner: Client, tmp_path: Path) -> None:
    pairs = [scored(1.0), scored(0.5)]
    keep(owner, pairs)
    file = tmp_path / "labels.csv"
    file.write_text(f"event_id,label\n{pairs[0][1]['event_id']},1\n{pairs[1][1]['event_id']},0\n")
    done = cli.call("judge", "calibrate", "--labels", str(file), "--dry-run", role="owner")
    assert done.returncode == 1
    assert b"stay warnings:\n  2 labels, but drift.calibration_labels is 50\n" in done.stdout


def test_a_judge_that_disagrees_with_people_is_a_finding(cli: Cli, owner: Client, tmp_path: Path) -> None:
    pairs = [scored(1.0) for _ in range(6)]
    keep(owner, pairs)
    file = tmp_path / "labels.csv"
    rows = [f"{score['event_id']},{n % 2}" for n, (_, score) in enumerate(pairs)]
    file.write_text("event_id,label\n" + "\n".join(rows) + "\n")
    assert cli.call("judge", "calibrate", "--labels", str(file), "--dry-run", role="owner").returncode == 1


def test_labels_of_answers_that_were_not_scored_are_refused(cli: Cli, owner: Client, tmp_path: Path) -> None:
    keep(owner, [scored(1.0)])
    file = tmp_path / "labels.csv"
    file.write_text("event_id,label\n019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d,1\n")
    done = cli.call("judge", "calibrate", "--labels", str(file), role="owner")
    assert done.returncode == 2
    assert b"0 of 1 labelled answers" in done.stderr


def test_answers_are_judged_again_with_the_draw_they_had(cli: Cli, owner: Client, redis_server: RedisServer) -> None:
    keep(owner, [scored(0, "skipped_budget"), scored(1.0)])
    done = cli.call("judge", "rejudge", "--status", "skipped_budget", "--dry-run", role="sre")
    assert done.stdout == b"1 answer(s) would be judged\n", done.stderr
    done = cli.call("judge", "rejudge", "--status", "skipped_budget", role="sre")
    assert done.stdout == b"scored 1\n", done.stderr
    with redis_server.client() as client:
        ((_, fields),) = client.xrange(SCORES.key())
    again = json.loads(fields[b"data"])
    assert {name: again[name] for name in DRAWN} == DRAWN
    assert (again["status"], again["boosts"]) == (ScoreStatus.SCORED, ["weak"])
    assert again["metrics"]["faithfulness"] == 0.5
    [waiting] = (
        cli.directory / "data/audit"
    ).iterdir()  # an sre may not insert records, and the next operator sends them
    ended = json.loads(waiting.read_text().splitlines()[-1])
    assert [ended[name] for name in ("operation", "outcome", "planned", "changed")] == ["judge rejudge", "done", 1, 1]
    assert json.loads(ended["target"])["status"] == ["skipped_budget"]


@pytest.fixture
def given(cli: Cli, owner: Client, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Two labelled answers, and the settings of this process."""
    monkeypatch.setenv("ASSAY_CONFIG", str(cli.settings_file("owner")))
    keep(owner, pairs := [scored(1.0), scored(0.5)])
    return {score["event_id"]: good for (_, score), good in zip(pairs, (True, False), strict=True)}


def last_calibration(owner: Client) -> list[tuple[str, int, str]]:
    ended = "SELECT outcome, changed, error_kind FROM operations WHERE operation = 'judge calibrate' ORDER BY started_at DESC LIMIT 1"
    return [tuple(row) for row in owner.query(ended).result_rows]


def published(server: RedisServer) -> list[str]:
    with server.client() as client:
        return [json.loads(value)["calibrated_at"] for value in client.hgetall(calibration_key()).values()]


def test_a_calibration_that_another_one_overtook_is_refused(owner: Client, given: dict[str, bool], cli: Cli) -> None:
    actor, data = local_actor(), cli.directory / "data"
    plans = [plan_calibration(data, given, threshold=threshold) for threshold in (0.7, 0.9)]
    apply_calibration(plans[0], actor)
    with pytest.raises(OperationError, match="another calibration of faithfulness of project default") as refused:
        apply_calibration(plans[1], actor)
    assert refused.value.kind == "conflict"
    assert owner.query("SELECT threshold FROM calibrations").result_rows == [(0.7,)]
    assert last_calibration(owner) == [("failed", 0, "conflict")]
    apply_calibration(plan_calibration(data, given, threshold=0.9), actor)
    assert owner.query("SELECT argMax(threshold, calibrated_at) FROM calibrations").result_rows == [(0.9,)]


def test_of_several_calibrations_at_once_one_is_stored_and_published(
    owner: Client, given: dict[str, bool], cli: Cli, redis_server: RedisServer
) -> None:
    plans = [plan_calibration(cli.directory / "data", given, threshold=0.5 + number / 20) for number in range(6)]

    def one(plan: Calibration) -> str:
        try:
            apply_calibration(plan, local_actor())
        except OperationError as error:
            return error.kind
        return "stored"

    with ThreadPoolExecutor(6) as threads:
        outcomes = sorted(threads.map(one, plans))
    assert outcomes == [*["conflict"] * 5, "stored"]
    [(threshold,)] = owner.query("SELECT threshold FROM calibrations").result_rows
    [winner] = [plan for plan in plans if plan.row["threshold"] == pytest.approx(threshold)]
    assert published(redis_server) == [winner.row["calibrated_at"]]


def test_a_calibration_is_refused_while_another_one_is_between_store_and_drift(
    owner: Client, given: dict[str, bool], cli: Cli, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan_calibration(cli.directory / "data", given)
    refused: list[str] = []

    def keep_slowly(*arguments: Any) -> None:
        real_keep(*arguments)
        later = plan_calibration(cli.directory / "data", given, threshold=0.9)
        assert later.replaces == first.row["calibration_id"]
        with pytest.raises(OperationError, match="is being stored, or its process was killed") as conflict:
            apply_calibration(later, local_actor())
        refused.append(conflict.value.kind)

    real_keep = calibrate._keep
    monkeypatch.setattr(calibrate, "_keep", keep_slowly)
    apply_calibration(first, local_actor())
    assert refused == ["conflict"]
    assert published(redis_server) == [first.row["calibrated_at"]]
    with redis_server.client() as client:
        assert client.keys("*calibrating*") == []


def test_without_redis_no_calibration_is_stored(
    owner: Client, given: dict[str, bool], cli: Cli, migrated: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_calibration(cli.directory / "data", given)
    away = Cli(cli.directory, store_url=migrated.url).settings_file("owner")
    monkeypatch.setenv("ASSAY_CONFIG", str(away))
    with pytest.raises(redis.ConnectionError):
        apply_calibration(plan, local_actor())
    assert owner.query("SELECT count() FROM calibrations").result_rows == [(0,)]
    assert last_calibration(owner) == [("failed", 0, "ConnectionError")]


@pytest.mark.parametrize("backend", ["anthropic", "anthropic-batch", "openai"])
def test_an_answer_that_is_judged_again_says_who_judged_it_now(
    cli: Cli, owner: Client, redis_server: RedisServer, backend: str
) -> None:
    keep(owner, [scored(0.5)])
    with OpenAiServer() if backend == "openai" else AnthropicServer() as api:
        given = {"backend": backend, "base_url": api.url, "api_key": KEY}
        given |= {"model": "local-judge", "price_input_usd": 1, "price_output_usd": 1} if backend == "openai" else {}
        settings = "[judge]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
        done = cli.call("judge", "rejudge", "--status", "scored", role="sre", extra=settings)
    assert done.stdout == b"scored 1\n", done.stderr
    with redis_server.client() as client:
        ((_, fields),) = client.xrange(SCORES.key())
    again = Score.model_validate_json(fields[b"data"])
    judge = judge_of(JudgeSettings.model_validate(given | {"backend": backend.removesuffix("-batch")}))
    assert (again.backend, again.model, again.fingerprint) == (judge.backend, judge.model, judge.fingerprint)
    assert again.cost_usd > 0


@pytest.mark.parametrize(
    ("mark", "said"), [("[fail:404]", b"model or address not found"), ("[fail:401]", b"the key is refused")]
)
def test_judging_again_stops_at_an_api_that_takes_nothing(cli: Cli, owner: Client, mark: str, said: bytes) -> None:
    data, score = scored(0.5)
    event = orjson.loads(data)
    event["payload"]["query"] = f"{mark} {event['payload']['query']}"
    keep(owner, [(orjson.dumps(event), score)])
    with AnthropicServer() as api:
        settings = f'[judge]\nbase_url = "{api.url}"\napi_key = "{KEY}"\n'
        done = cli.call("judge", "rejudge", "--status", "scored", role="sre", extra=settings)
    assert done.returncode == 2
    assert said in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_budget_that_is_used_up_leaves_verdicts_as_they_are(
    cli: Cli, owner: Client, redis_server: RedisServer
) -> None:
    keep(owner, [scored(0.5), scored(0.5)])
    with AnthropicServer() as api:
        settings = f'[judge]\nbase_url = "{api.url}"\napi_key = "{KEY}"\nbudget_usd_per_day = 0\n'
        done = cli.call("judge", "rejudge", "--status", "scored", role="sre", extra=settings)
    assert done.returncode == 2
    assert b"judge.budget_usd_per_day is used up for this project: raise it" in done.stderr
    assert api.ended == {}
    with redis_server.client() as client:
        assert client.xlen(SCORES.key()) == 0


def test_an_answer_that_another_judge_has_in_hand_is_left_to_it(
    cli: Cli, owner: Client, redis_server: RedisServer
) -> None:
    data, score = scored(0.5)
    keep(owner, [(data, score)])
    with AnthropicServer() as api, redis_server.client() as client:
        given = {"base_url": api.url, "api_key": KEY}
        fingerprint = judge_of(JudgeSettings.model_validate(given)).fingerprint
        record = f"assay:{{0}}:judge:call:{score['event_id']}:{fingerprint}"
        client.hset(record, mapping={"state": "reserved", "owner": "other", "lease": int(time.time() * 1000) + 60_000})
        settings = "[judge]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
        done = cli.call("judge", "rejudge", "--status", "scored", role="sre", extra=settings)
        assert done.returncode == 0, done.stderr
        assert (api.ended, client.hget(record, "owner"), client.xlen(SCORES.key())) == ({}, b"other", 0)


def test_a_key_that_is_refused_charges_nothing_to_judge_again(
    cli: Cli, owner: Client, redis_server: RedisServer
) -> None:
    """Only what the API billed before is charged, in the books of the project and of all of them."""
    first, second = scored(0.5), scored(0.5)
    keep(owner, [first, second])

    def accept_no_more(document: dict[str, Any]) -> str:
        api.keys = set()
        return verdict(document)

    with AnthropicServer(reply=accept_no_more) as api:
        settings = f'[judge]\nbase_url = "{api.url}"\napi_key = "{KEY}"\n'
        done = [cli.call("judge", "rejudge", "--status", "scored", role="sre", extra=settings) for _ in range(2)]
    assert [each.returncode for each in done] == [2, 2]
    assert all(b"the key is refused" in each.stderr for each in done)
    assert api.ended == {"ok": 1, "401": 2}
    with redis_server.client() as client:
        assert client.xlen(SCORES.key()) == 1
        books = [int(client.get(key)) for name in ("spend", "total") for key in client.keys(f"*:judge:{name}:*")]
    assert books == [api.nano, api.nano]


def test_an_unknown_status_is_refused_by_name(cli: Cli) -> None:
    done = cli.call("judge", "rejudge", "--status", "lost", role="sre")
    assert done.returncode == 2
    assert b"'lost' is not one of scored" in done.stderr


def judged(text: str, *passages: str) -> tuple[bytes, dict[str, Any]]:
    """An answer, and the score that the lexical judge gives it."""
    data = answer_bytes("What about the pump?", text, passages=passages, project="default")
    event = parse_scrubbed(data)
    assert isinstance(event, ScrubbedAnswer)
    drawn = Draw(sampled=True, base=True, base_probability=1.0, inclusion_probability=1.0)
    return data, orjson.loads(lexical_score(lexical.judge(), event, drawn, {"no_injected_instruction": False}, 200_000))


def test_the_evidence_of_each_sentence_is_shown_and_the_one_without_support_named(cli: Cli, owner: Client) -> None:
    hostile = "The \x1b]0;owned\x07pump runs\u202e at 230 V."
    text = f"The pump has two valves [1]. {hostile} It floats on lava “quietly”. Anything else?"
    data, score = judged(text, "Sandals. The pump has **two** valves — quiet ones.", hostile)
    keep(owner, [(data, score)])
    done = cli.call("judge", "show", score["event_id"], "--json", role="sre")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    found = [
        (each["text"], each["verdict"], [claim["quote"] for claim in each["claims"]]) for each in shown["sentences"]
    ]
    assert found == [
        ("The pump has two valves [1].", "supported", ["The pump has **two** valves — quiet ones"]),
        (hostile, "supported", [hostile.rstrip(".")]),
        ("It floats on lava “quietly”.", "not_found", [None]),
        ("Anything else?", "", []),
    ]
    assert [claim["passage"] for each in shown["sentences"] for claim in each["claims"]] == [1, 2, None]
    lines = cli.call("judge", "show", score["event_id"], role="sre").stdout.decode()
    assert "NO SUPPORT    It floats on lava" in lines
    assert 'passage 1 (doc-0): "The pump has **two** valves — quiet ones"' in lines
    assert "failed checks: no_injected_instruction" in lines
    assert not {"\x1b", "\x07", "\u202e"} & set(lines)
    stored = owner.query(
        "SELECT substringUTF8(a.answer, v.answer_from + 1, v.answer_to - v.answer_from) FROM scores AS s"
        " ARRAY JOIN s.verdicts AS v INNER JOIN answers AS a ON a.event_id = s.event_id WHERE v.verdict = 'not_found'"
    ).result_rows
    assert [tuple(row) for row in stored] == [("It floats on lava “quietly”.",)]


def test_evidence_that_is_not_stored_is_said_so(cli: Cli, owner: Client) -> None:
    data, score = judged("The pump has two valves.", "The pump has two valves.")
    old = {name: value for name, value in score.items() if name != "verdicts"}  # as the version before publishes it
    keep(owner, [(data, old)])
    assert b"to judge it again: assay judge rejudge" in cli.call("judge", "show", score["event_id"], role="sre").stdout
    owner.command("TRUNCATE TABLE assay_base.answers")
    gone = cli.call("judge", "show", score["event_id"], role="sre")
    assert (gone.returncode, b"the answer itself is not" in gone.stderr) == (2, True)
    unknown = cli.call("judge", "show", "019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d", role="sre")
    assert (unknown.returncode, b"no score" in unknown.stderr) == (2, True)
    assert b"is not an event_id" in cli.call("judge", "show", "nonsense", role="sre").stderr


def test_a_score_is_erased_with_its_evidence(cli: Cli, owner: Client) -> None:
    keep(owner, [judged("The pump has two valves.", "The pump has two valves.")])
    done = cli.call("prune", "--older-than", "0d", "--yes", role="owner")
    assert done.returncode == 0, done.stderr
    assert owner.query("SELECT count(), sum(length(verdicts)) FROM scores").result_rows == [(0, 0)]
