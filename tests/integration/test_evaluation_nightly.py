"""The nightly evaluation with a real store and a real Redis: once a day, whatever is killed, and told of."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay_cli.commands.eval.nightly import exit_code
from assay_evals.nightly import Outcome, read_attempts
from assay_operations.evaluations.nightly import nightly_evaluations
from assay_runtime.config import load_settings
from assay_runtime.store import connect
from assay_schema.alerts import Alert
from assay_schema.settings import EvalsSettings, RedisSettings, Settings
from assay_schema.streams import alert_inbox_key
from tests.support.anthropic_server import KEY, AnthropicServer, verdict
from tests.support.openai_server import OpenAiServer, settings_toml
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer

pytestmark = pytest.mark.xdist_group("evaluation-store")

#: Three of a morning in the present: rows expire by the store's clock.
NIGHT = datetime.now(UTC).replace(hour=3, minute=30, second=0, microsecond=0) - timedelta(days=10)
CASES = [{"id": f"c{n}", "query": f"doc{n}", "expected_ids": [f"doc{n}"]} for n in range(80)]
TARGET = """
from pathlib import Path
def find(query, limit=10):
    mode = Path("mode").read_text()
    if mode == "hang":
        import time
        time.sleep(60)
    if mode == "broken":
        raise RuntimeError(query)
    return {"results": {"good": [query], "bad": ["other"]}[mode], "latency_ms": 1.0}
"""


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


class Nights:
    """A worker whose clock is set, and a target that does as the file `mode` says."""

    def __init__(self, folder: Path, server: StoreServer, redis: RedisServer) -> None:
        (folder / "golden.json").write_text(json.dumps({"version": "1", "name": "golden", "cases": CASES}))
        (folder / "nightly_target.py").write_text(TARGET)
        self.folder, self.server, self.redis, self.now = folder, server, redis, NIGHT
        self.scorers: list[str] = []
        evals = EvalsSettings(dataset=folder / "golden.json", target="nightly_target:find", project=folder.name[-40:])
        self.settings = replace_evals(server.settings("evaluator"), evals, redis)

    def attempt(self, mode: str, *, days: float = 0, **evals: object) -> Outcome:
        (self.folder / "mode").write_text(mode)
        self.now += timedelta(days=days)
        settings = self.settings
        if evals:
            settings = settings.model_copy(update={"evals": settings.evals.model_copy(update=evals)})
        [night] = nightly_evaluations(settings, lambda: self.now, scorers=self.scorers)
        self.made = night.attempt()
        return self.made.outcome

    def alerts(self) -> list[Alert]:
        handed_in = self.redis.client().lrange(alert_inbox_key(), 0, -1)
        found = [Alert.model_validate_json(data) for data in handed_in]
        return [alert for alert in found if alert.project == self.settings.evals.project]


def replace_evals(settings: Settings, evals: EvalsSettings, redis: RedisServer) -> Settings:
    return settings.model_copy(update={"evals": evals, "redis": RedisSettings(url=redis.url)})


@pytest.fixture
def nights(tmp_path: Path, migrated: StoreServer, redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Nights:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("nightly_target", None)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Nights(tmp_path, migrated, redis)


def test_each_outcome_is_stored_and_told_once(nights: Nights) -> None:
    assert nights.attempt("good") is Outcome.PASS
    assert nights.attempt("bad") is Outcome.RATE_LIMITED, "once a day"
    assert nights.attempt("good", days=1) is Outcome.PASS
    assert nights.attempt("bad", days=1) is Outcome.FAIL
    assert exit_code(nights.made) == 1
    assert "mrr" in nights.made.failed_metrics
    assert nights.attempt("bad", days=1) is Outcome.FAIL
    assert nights.attempt("broken", days=1) is Outcome.ERROR
    assert nights.attempt("good", days=0.1) is Outcome.PASS, "an error is tried again in the same night"
    told = {alert.transition_id: alert for alert in nights.alerts()}
    assert [(alert.kind.value, alert.state.value) for alert in told.values()] == [
        ("score_drift", "warn"),
        ("silence", "warn"),
        ("score_drift", "resolved"),
        ("silence", "resolved"),
    ]
    with connect(nights.server.settings("evaluator").store) as client:
        kept = read_attempts(client, nights.made.evaluation, nights.made.project)
    assert [each.outcome.value for each in kept if each.outcome is not Outcome.RATE_LIMITED] == [
        "pass", "pass", "fail", "fail", "error", "pass",
    ]  # fmt: skip
    assert kept[-1] == replace(nights.made)


def test_without_a_key_the_outcome_says_so_and_nothing_is_asked(nights: Nights) -> None:
    assert nights.attempt("good", judge="anthropic") is Outcome.NO_JUDGE_KEY
    assert "judge.api_key" in nights.made.detail
    assert not (nights.folder / "runs" / f"nightly-{NIGHT:%Y%m%d}").exists()


def test_answers_are_judged_where_there_are_some_and_the_lexical_judge_needs_no_money(nights: Nights) -> None:
    assert nights.attempt("good", judge="lexical", budget_usd=0.0) is Outcome.PASS
    assert nights.made.cost_usd == 0


def test_a_night_whose_money_is_used_up_says_so_and_spends_no_more(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nights.folder / "nightly_target.py").write_text(
        "def find(query, limit=10):\n"
        "    context = {'id': query, 'text': f'It is {query}.'}\n"
        "    return {'results': [query], 'answer': f'It is {query}.', 'contexts': [context], 'latency_ms': 1.0}\n"
    )
    with AnthropicServer() as api:
        file = nights.folder / "judge.toml"
        file.write_text(f'[judge]\napi_key = "{KEY}"\nbase_url = "{api.url}"\n')
        monkeypatch.setenv("ASSAY_CONFIG", str(file))
        nights.settings = nights.settings.model_copy(update={"judge": load_settings(file).judge})
        assert nights.attempt("good", judge="anthropic", budget_usd=0.004) is Outcome.BUDGET_EXCEEDED
        assert 0 < api.nano <= 4_000_000
        assert nights.made.cost_usd == pytest.approx(api.nano / 1e9, rel=1e-6)
    assert exit_code(nights.made) == 2
    assert [alert.kind.value for alert in nights.alerts()] == ["silence"]


def test_a_night_whose_judge_gave_no_verdict_at_all_is_an_error_and_passes_once_it_does(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nights.folder / "nightly_target.py").write_text(
        "def find(query, limit=10):\n"
        "    context = {'id': query, 'text': f'It is {query}.'}\n"
        "    return {'results': [query], 'answer': f'It is {query}.', 'contexts': [context], 'latency_ms': 1.0}\n"
    )
    with OpenAiServer(around="I would say: {}") as api:
        file = nights.folder / "judge.toml"
        file.write_text(settings_toml(api.url, KEY))
        file.chmod(0o600)
        monkeypatch.setenv("ASSAY_CONFIG", str(file))
        nights.settings = nights.settings.model_copy(update={"judge": load_settings(file).judge})
        assert nights.attempt("good", judge="openai") is Outcome.ERROR
        assert f"no verdict for any of {len(CASES)} answers" in nights.made.detail
        assert exit_code(nights.made) == 2
        assert nights.made.cost_usd == pytest.approx(api.nano / 1e9)
        api.around = "{}"
        assert nights.attempt("good", days=0.05, judge="openai") is Outcome.PASS
        assert set(api.asked.values()) == {len(api.bodies) // len(CASES)}, "each answer is asked for again"


def test_a_dataset_that_cannot_be_read_is_an_error_and_not_the_end(nights: Nights) -> None:
    (nights.folder / "golden.json").write_text("{]")
    assert nights.attempt("good") is Outcome.ERROR
    assert exit_code(nights.made) == 2


def test_alerts_that_redis_did_not_take_are_published_at_the_next_start(nights: Nights) -> None:
    nights.attempt("good")
    away = RedisSettings(url="redis://127.0.0.1:1/0")
    settings, nights.settings = nights.settings, nights.settings.model_copy(update={"redis": away})
    assert nights.attempt("bad", days=1) is Outcome.FAIL
    assert nights.alerts() == []
    nights.settings = settings
    assert nights.attempt("bad", days=0.1) is Outcome.RATE_LIMITED
    assert [alert.state.value for alert in nights.alerts()] == ["warn"]


def test_a_killed_attempt_is_gone_on_with_after_its_deadline(nights: Nights) -> None:
    (nights.folder / "mode").write_text("hang")
    file = nights.folder / "evaluator.toml"
    far = (datetime.now(UTC).hour + 12) % 24  # no night begins while this runs
    nights.settings = nights.settings.model_copy(
        update={"evals": nights.settings.evals.model_copy(update={"hour": far})}
    )
    evals = nights.settings.evals
    file.write_text(
        f'[redis]\nurl = "{nights.redis.url}"\n[store]\nurl = "{nights.server.url}"\nuser = "evaluator"\npassword = "{PASSWORD}"\n'
        f'[evals]\ndataset = "{evals.dataset}"\ntarget = "{evals.target}"\nproject = "{evals.project}"\nhour = {far}\n'
    )
    command = [str(Path(sys.executable).parent / "assay"), "eval", "nightly", "--once"]
    process = subprocess.Popen(command, cwd=nights.folder, env={**os.environ, "ASSAY_CONFIG": str(file)})
    nights.now = datetime.now(UTC)
    try:
        deadline = time.monotonic() + 60
        while not list(nights.folder.glob("runs/nightly-*/run.json")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        assert nights.attempt("good") is Outcome.RATE_LIMITED, "another process is at it"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert nights.attempt("good") is Outcome.RATE_LIMITED
    assert "killed" in nights.made.detail
    assert nights.attempt("good", days=0.125) is Outcome.PASS


def test_attempts_of_a_night_have_one_budget_even_where_the_dataset_changes(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nights.folder / "nightly_target.py").write_text(
        "def find(query, limit=10):\n"
        "    if query == 'doc79':\n"
        "        raise RuntimeError(query)\n"
        "    context = {'id': query, 'text': f'It is {query}.'}\n"
        "    return {'results': [query], 'answer': f'It is {query}.', 'contexts': [context], 'latency_ms': 1.0}\n"
    )
    costs = []
    with AnthropicServer() as api:
        file = nights.folder / "judge.toml"
        file.write_text(f'[judge]\napi_key = "{KEY}"\nbase_url = "{api.url}"\n')
        monkeypatch.setenv("ASSAY_CONFIG", str(file))
        nights.settings = nights.settings.model_copy(update={"judge": load_settings(file).judge})
        for version in ("1", "2", "3"):
            golden = {"version": version, "name": "golden", "cases": CASES}
            (nights.folder / "golden.json").write_text(json.dumps(golden))
            assert nights.attempt("good", days=0.05, judge="anthropic", budget_usd=0.004) is Outcome.ERROR
            costs.append(nights.made.cost_usd)
        assert 0 < api.nano <= 4_000_000
        assert sum(costs) == pytest.approx(api.nano / 1e9, rel=1e-6)


RULES = """
[[scorers]]
name = "polite"
type = "contains"
value = "please"

[metrics."score:polite"]
floor = 0.9
threshold = 0.05

[[slices]]
field = "query_type"
floors = {"score:polite" = 0.5}
"""
POLITE = """
from pathlib import Path
def find(query, limit=10):
    word = {"good": "please", "bad": "no"}[Path("mode").read_text()]
    context = {"id": query, "text": f"It is {query}."}
    return {"results": [query], "answer": f"{word}: It is {query}.", "contexts": [context], "latency_ms": 1.0}
"""


def test_a_night_is_held_against_its_rules_from_the_first_on(nights: Nights) -> None:
    (nights.folder / "nightly_target.py").write_text(POLITE)
    rules = nights.folder / "rules.toml"
    rules.write_text(RULES)
    assert nights.attempt("bad", rules=rules) is Outcome.FAIL
    assert nights.made.failed_metrics == ["score:polite", "query_type=technical score:polite"]
    assert "floor of 0.9" in nights.made.detail
    assert nights.attempt("good", days=1, rules=rules) is Outcome.PASS
    rules.write_text(RULES.replace("floor = 0.9", "").partition("[[slices]]")[0])
    assert nights.attempt("bad", days=1, rules=rules) is Outcome.FAIL, (
        "a scorer with a threshold blocks in the comparison"
    )
    assert nights.made.failed_metrics == ["score:polite"]
    assert [(alert.state.value, alert.metric) for alert in nights.alerts()][-1] == ("warn", "score_polite")
    with connect(nights.server.settings("evaluator").store) as client:
        means = client.query(
            "SELECT means['score:polite'] FROM eval_runs WHERE project = {project:String} ORDER BY started_at",
            parameters={"project": nights.made.project},
        ).result_rows
    assert [mean for (mean,) in means] == [0.0, 1.0, 0.0], "they are in the store beside the other metrics"


def test_who_changes_a_scorer_begins_anew_with_it_alone(nights: Nights) -> None:
    (nights.folder / "nightly_target.py").write_text(POLITE)
    rules = nights.folder / "rules.toml"
    rules.write_text(RULES)
    assert nights.attempt("good", rules=rules) is Outcome.PASS
    rules.write_text(RULES.replace("please", "It is"))
    assert nights.attempt("bad", days=1, rules=rules) is Outcome.PASS
    assert "compared with nightly-" in nights.made.detail, "all else is"
    nights.scorers = ["short=regex:^.{1,10}$"]
    assert nights.attempt("bad", days=1) is Outcome.PASS, "one that no rule names is for information"


def test_rules_that_cannot_be_used_are_the_outcome_of_the_night(nights: Nights) -> None:
    rules = nights.folder / "rules.toml"
    rules.write_text("[metrics.mrrr]\nfloor = 0.5\n")
    assert nights.attempt("good", rules=rules) is Outcome.ERROR
    assert "did you mean mrr?" in nights.made.detail
    rules.write_text('[[scorers]]\nname = "kind"\ntype = "rubric"\nvalue = "Is it kind?"\n')
    assert nights.attempt("good", days=1, rules=rules, judge="lexical") is Outcome.ERROR
    assert "evals.judge" in nights.made.detail
    rules.unlink()
    assert nights.attempt("good", days=1, rules=rules) is Outcome.ERROR
    assert "evals.rules: no file" in nights.made.detail


def test_rules_of_a_file_that_nobody_named_run_no_code(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_CONFIG", raising=False)
    rules = nights.folder / "rules.toml"
    rules.write_text('[[scorers]]\nname = "own"\ntype = "function"\nvalue = "nightly_target:find"\n')
    (nights.folder / "assay.toml").write_text(f'[evals]\nrules = "{rules}"\n')
    assert nights.attempt("good", rules=rules) is Outcome.ERROR
    assert "code to run" in nights.made.detail


def yes(document: dict[str, Any]) -> str:
    return json.dumps({"reason": "it does", "met": "yes"}) if "criterion" in document else verdict(document)


def test_a_rubric_is_asked_about_every_night_within_its_budget(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    (nights.folder / "nightly_target.py").write_text(POLITE)
    rules = nights.folder / "rules.toml"
    rules.write_text(
        '[[scorers]]\nname = "kind"\ntype = "rubric"\nvalue = "Is it kind?"\n[metrics."score:kind"]\nfloor = 0.5\n'
    )
    with OpenAiServer(reply=yes) as api:
        file = nights.folder / "judge.toml"
        file.write_text(settings_toml(api.url, KEY))
        file.chmod(0o600)
        monkeypatch.setenv("ASSAY_CONFIG", str(file))
        nights.settings = nights.settings.model_copy(update={"judge": load_settings(file).judge})
        asked = iter(range(len(CASES)))
        api.reply = lambda document: yes(document) if "criterion" not in document or next(asked) == 0 else "no idea"
        assert nights.attempt("good", judge="openai", rules=rules) is Outcome.ERROR
        assert f"{len(CASES) - 1:,} answer(s) have no score" in nights.made.detail
        api.reply, paid = yes, api.nano
        assert nights.attempt("good", days=1, judge="openai", rules=rules) is Outcome.PASS
        assert nights.made.cost_usd == pytest.approx((api.nano - paid) / 1e9)
    with connect(nights.server.settings("evaluator").store) as client:
        ((counted,),) = client.query(
            "SELECT count() FROM eval_results WHERE project = {project:String} AND mapContains(metrics, 'score:kind')",
            parameters={"project": nights.made.project},
        ).result_rows
    assert counted == 2 * len(CASES)
