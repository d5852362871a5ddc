"""Benchmarks of a night with a real store and a real Redis: LongMemEval on a memory, and a panel on its answers."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay_evals.nightly import Attempt, Outcome
from assay_operations.errors import OperationError
from assay_operations.evaluations import paid_calls
from assay_operations.evaluations.nightly import nightly_evaluations
from assay_runtime.store import connect
from assay_schema.alerts import Alert
from assay_schema.settings import RedisSettings
from assay_schema.streams import alert_inbox_key
from tests.support.anthropic_server import KEY
from tests.support.contradictions import judge
from tests.support.longmemeval import rows, write
from tests.support.openai_server import OpenAiServer, settings_toml
from tests.support.panel import Panel
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer

pytestmark = pytest.mark.xdist_group("evaluation-store")

#: A system whose documents state limits, and its questions.
SEARCH = """
from tests.support.contradictions import limit

def search(query, limit_=5):
    ids = [f"{name} for {query}" for name in ("a", "b")]
    return {"results": ids, "contexts": [{"id": ids[0], "text": limit(5)}, {"id": ids[1], "text": limit(9)}]}
"""
NIGHT = datetime.now(UTC).replace(hour=3, minute=30, second=0, microsecond=0) - timedelta(days=10)
#: A memory that does as the file `mode` says, and notes what it was asked.
MEMORY = """
import asyncio
from pathlib import Path

KEPT = {}


async def memory(query, limit=10, tool_name="query", params=None):
    if tool_name == "ingest":
        KEPT[params["memory"]] = params["sessions"]
        return None
    mode, thing = Path("mode").read_text(), query.rstrip("?").split()[-1]
    with Path("asked").open("a") as file:
        file.write(thing + "\\n")
    if mode == "one down" and Path("asked").read_text().count("\\n") == 1:
        raise ValueError("down")
    if mode == "hang" and Path("asked").read_text().count("\\n") > 5:
        await asyncio.sleep(60)
    found = [each for each in KEPT[params["memory"]] if any(f"my {thing} is" in turn["content"] for turn in each["turns"])]
    if mode == "bad":
        found = []
    return {"results": [each["session_id"] for each in found], "answer": Path("answer").read_text(), "latency_ms": 1.0}
"""


class Nights:
    """The nightly worker's evaluations, with a clock that is set."""

    def __init__(self, folder: Path, server: StoreServer, redis: RedisServer) -> None:
        (folder / "night_memory.py").write_text(MEMORY)
        (folder / "answer").write_text("9")
        write(folder / "lme.json", rows(24))
        settings = server.settings("evaluator")
        evals = settings.evals.model_copy(update={"project": folder.name[-40:]})
        memory = settings.nightly_longmemeval.model_copy(
            update={"dataset": folder / "lme.json", "target": "night_memory:memory"}
        )
        changes = {"evals": evals, "redis": RedisSettings(url=redis.url), "nightly_longmemeval": memory}
        self.settings = settings.model_copy(update=changes)
        self.folder, self.redis, self.now = folder, redis, NIGHT

    def have(self, section: str, **changes: Any) -> None:
        self.settings = self.settings.model_copy(
            update={section: getattr(self.settings, section).model_copy(update=changes)}
        )

    def attempts(self, mode: str = "good", *, days: float = 0) -> list[Attempt]:
        (self.folder / "mode").write_text(mode)
        self.now += timedelta(days=days)
        return [each.attempt() for each in nightly_evaluations(self.settings, lambda: self.now)]

    def outcomes(self, mode: str = "good", *, days: float = 0) -> list[Outcome]:
        return [each.outcome for each in self.attempts(mode, days=days)]

    def asked(self) -> Counter[str]:
        return Counter((self.folder / "asked").read_text().split())

    def alerts(self) -> list[tuple[str, str]]:
        handed_in = [Alert.model_validate_json(data) for data in self.redis.client().lrange(alert_inbox_key(), 0, -1)]
        mine = {each.transition_id: each for each in handed_in if each.project == self.settings.evals.project}
        return [(each.kind.value, each.state.value) for each in mine.values()]


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def nights(tmp_path: Path, migrated: StoreServer, redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Nights:
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("night_memory", None)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Nights(tmp_path, migrated, redis)


@pytest.fixture
def panel(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> Iterator[Panel]:
    monkeypatch.setattr(paid_calls, "RETRY_S", 0.0)
    monkeypatch.setattr(paid_calls, "PAUSE_MOST_S", 0.0)
    monkeypatch.setenv("PANEL_TEST_KEY", KEY)
    with ExitStack() as stack:
        made = Panel(nights.folder, stack)
        nights.have("nightly_longmemeval", judge="lexical")
        nights.have("nightly_cross_modal", panel=made.file, limit=24)
        yield made


def test_a_night_that_is_significantly_worse_than_the_last_one_that_passed_fails_with_an_alert(nights: Nights) -> None:
    assert nights.outcomes() == [Outcome.PASS]
    assert nights.outcomes() == [Outcome.RATE_LIMITED], "once a day"
    [worse] = nights.attempts("bad", days=1)
    assert worse.outcome is Outcome.FAIL
    assert "recall_hit" in worse.failed_metrics
    assert worse.baseline.startswith(f"nightly-{NIGHT:%Y%m%d}-longmemeval-")
    assert "recall_hit 1.000 to 0.000 (p " in worse.detail
    assert nights.outcomes("good", days=1) == [Outcome.PASS]
    assert nights.alerts() == [("score_drift", "warn"), ("score_drift", "resolved")]


def test_a_question_type_below_the_floor_fails_the_first_night(nights: Nights) -> None:
    nights.have("nightly_longmemeval", floor=0.5)
    [found] = nights.attempts("bad")
    assert found.outcome is Outcome.FAIL
    assert "recall of single-session-user" in found.failed_metrics


def test_a_night_beyond_its_deadline_is_continued_and_asks_each_question_once(nights: Nights) -> None:
    nights.have("evals", deadline_minutes=0.05)
    [late] = nights.attempts("hang")
    assert (late.outcome, late.detail) == (
        Outcome.ERROR,
        "not done within 0.05 minutes (evals.deadline_minutes)",
    )
    done = [json.loads(line) for path in Path("runs").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert 0 < len(done) < 24
    answered = {each["question_id"] for each in done}
    before = nights.asked()
    nights.have("evals", deadline_minutes=5.0)
    assert nights.outcomes("good", days=0.1) == [Outcome.PASS]
    assert all(nights.asked()[name] == before[name] for name in answered), "what is done is not asked again"


def test_a_first_night_with_errors_is_an_error_and_the_next_attempt_asks_only_those(nights: Nights) -> None:
    [found] = nights.attempts("one down")
    assert (found.outcome, found.detail) == (Outcome.ERROR, "1 of 24 ended in an error")
    before = nights.asked()
    assert nights.outcomes("good", days=0.1) == [Outcome.PASS]
    assert sum((nights.asked() - before).values()) == 1


def test_a_night_whose_dataset_was_edited_is_compared_with_nothing(nights: Nights) -> None:
    assert nights.outcomes() == [Outcome.PASS]
    edited = rows(24)
    edited[0]["question"] = f"Please tell me: {edited[0]['question']}"
    write(nights.folder / "lme.json", edited)
    [found] = nights.attempts("bad", days=1)
    assert (found.outcome, found.baseline) == (Outcome.PASS, "")
    assert "the first night of this dataset" in found.detail
    [found] = nights.attempts("good", days=1)
    assert found.outcome is Outcome.PASS
    assert found.baseline, "the next one is compared with it"


def test_settings_are_named_in_the_reason_of_an_error(nights: Nights) -> None:
    nights.have("nightly_longmemeval", baseline=Path("gone.jsonl"))
    [found] = nights.attempts()
    assert found.outcome is Outcome.ERROR
    assert found.detail.startswith("nightly_longmemeval.baseline: gone.jsonl")


def test_a_panel_judges_the_answers_of_the_night(nights: Nights, panel: Panel) -> None:
    memory, judged = nights.attempts()
    assert memory.outcome is Outcome.PASS
    assert (judged.outcome, judged.cases) == (Outcome.PASS, 24)
    assert 0 < judged.cost_usd < 5
    assert "pass rate 100.0%" in judged.detail
    summary = json.loads((Path("runs") / judged.run_name).read_text())
    assert summary["pass"] == 24
    (nights.folder / "answer").write_text("3")
    assert nights.outcomes(days=1)[1] is Outcome.FAIL
    assert nights.alerts() == [("score_drift", "warn")]


def test_a_panel_waits_for_complete_answers(nights: Nights, panel: Panel) -> None:
    nights.have("evals", deadline_minutes=0.05)
    assert nights.outcomes("hang") == [Outcome.ERROR, Outcome.ERROR]
    assert panel.asked == 0
    nights.have("evals", deadline_minutes=5.0)
    assert nights.outcomes(days=0.1) == [Outcome.PASS, Outcome.PASS]


def test_a_panel_that_usually_costs_more_than_its_budget_does_not_begin(nights: Nights, panel: Panel) -> None:
    nights.have("nightly_cross_modal", budget_usd=0.001)
    judged = nights.attempts()[1]
    assert judged.outcome is Outcome.BUDGET_EXCEEDED
    assert "raise nightly_cross_modal.budget_usd" in judged.detail
    assert panel.asked == 0


def test_the_attempts_of_a_night_share_the_budget_of_the_panel(nights: Nights, panel: Panel) -> None:
    panel.openai.keys = panel.local.keys = {"another"}  # so that no answer has two families
    first = nights.attempts()[1]
    assert first.outcome is Outcome.ERROR
    assert first.cost_usd > 0
    panel.openai.keys, panel.local.keys = {KEY}, set()
    nights.have("nightly_cross_modal", budget_usd=first.cost_usd)
    again = nights.attempts(days=0.1)[1]
    assert again.outcome is Outcome.BUDGET_EXCEEDED, "nothing of it is left"


def test_a_line_of_the_answers_that_is_an_error_settles_the_night_as_inconclusive(nights: Nights, panel: Panel) -> None:
    nights.have("nightly_longmemeval", dataset=None)
    nights.have("nightly_cross_modal", answers=Path("answers.jsonl"))
    with panel.answers("9", "9").open("a") as file:
        file.write(json.dumps({"question_id": "q8", "question": "?", "hypothesis": "", "error": "timeout"}) + "\n")
    [judged] = nights.attempts()
    assert (judged.outcome, judged.cases, judged.errored) == (Outcome.INCONCLUSIVE, 3, 1)
    assert "1 upstream error" in judged.detail
    asked = panel.asked
    assert nights.outcomes(days=0.1) == [Outcome.RATE_LIMITED]
    assert panel.asked == asked
    with panel.answers("9", "3").open("a") as file:
        file.write("no JSON\n")
    [judged] = nights.attempts(days=1)
    assert (judged.outcome, judged.failed_metrics) == (Outcome.FAIL, ["pass_rate"])


def test_a_panel_pays_for_no_reply_of_the_night_again(nights: Nights, panel: Panel) -> None:
    panel.openai.keys = panel.local.keys = {"another"}
    first = nights.attempts()[1]
    assert first.outcome is Outcome.ERROR
    judged = sum(panel.anthropic.asked.values())
    assert judged > 0
    panel.openai.keys, panel.local.keys = {KEY}, set()
    again = nights.attempts(days=0.1)[1]
    assert again.outcome is Outcome.PASS
    assert sum(panel.anthropic.asked.values()) == 24, "one reply for each answer, over both attempts"
    assert nights.outcomes(days=1)[1] is Outcome.PASS
    assert sum(panel.anthropic.asked.values()) == 48, "another night asks again"
    assert len(list(Path("runs/.nightly-replies").iterdir())) == 1, "replies of the night before are removed"


def test_a_judge_without_its_key_is_named_and_nothing_is_asked(
    nights: Nights, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PANEL_TEST_KEY")
    judged = nights.attempts()[1]
    assert judged.outcome is Outcome.NO_JUDGE_KEY
    assert "PANEL_TEST_KEY" in judged.detail
    assert panel.asked == 0


def test_a_panel_without_answers_is_refused(nights: Nights, panel: Panel) -> None:
    nights.have("nightly_longmemeval", dataset=None)
    with pytest.raises(OperationError, match=r"nightly_cross_modal\.answers"):
        nights.attempts()
    nights.have("nightly_longmemeval", dataset=nights.folder / "lme.json", judge="none")
    with pytest.raises(OperationError, match=r"set nightly_longmemeval\.judge, or nightly_cross_modal\.answers"):
        nights.attempts()
    nights.have("nightly_longmemeval", dataset=None)
    panel.answers("9", "9")
    nights.have("nightly_cross_modal", answers=Path("answers.jsonl"))
    assert nights.outcomes() == [Outcome.PASS]


@pytest.fixture
def documents(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    monkeypatch.setattr(paid_calls, "RETRY_S", 0.0)
    sys.modules.pop("night_search", None)
    (nights.folder / "night_search.py").write_text(SEARCH)
    with OpenAiServer(reply=judge) as api:
        file = nights.folder / "evaluator.toml"
        store = f'[store]\nurl = "{nights.settings.store.url}"\nuser = "evaluator"\npassword = "{PASSWORD}"\n'
        file.write_text(settings_toml(api.url, KEY) + store)
        file.chmod(0o600)
        monkeypatch.setenv("ASSAY_CONFIG", str(file))
        nights.have("nightly_longmemeval", dataset=None)
        nights.have("nightly_contradictions", queries=Path("questions.txt"), target="night_search:search")
        yield api


def test_a_night_of_contradictions_is_stored_and_fails_above_its_rate_or_for_a_severe_finding(
    nights: Nights, documents: OpenAiServer, migrated: StoreServer
) -> None:
    Path("questions.txt").write_text("".join(f"how fast may I ask, {number}?\n" for number in range(12)))
    [found] = nights.attempts()
    assert (found.outcome, found.cases) == (Outcome.PASS, 12)
    assert "12 pairs judged" in found.detail
    assert "100.0% of questions contradict" in found.detail
    assert found.cost_usd == pytest.approx(documents.nano / 1e9)
    with connect(migrated.settings("sre").store) as client:
        [[stored]] = client.query(
            "SELECT count() FROM contradiction_runs WHERE project = {project:String}",
            {"project": nights.settings.evals.project},
        ).result_rows
    assert stored == 1
    nights.have("nightly_contradictions", max_rate=0.5)
    [above] = nights.attempts(days=1)
    assert (above.outcome, above.failed_metrics) == (Outcome.FAIL, ["contradictions"])
    nights.have("nightly_contradictions", max_rate=None, fail_on="high")
    assert nights.outcomes(days=1) == [Outcome.PASS], "their severity is low"
    nights.have("nightly_contradictions", fail_on="low")
    [severe] = nights.attempts(days=1)
    assert (severe.outcome, severe.failed_metrics) == (Outcome.FAIL, ["findings"])


def test_the_attempts_of_a_night_share_the_budget_of_contradictions(nights: Nights, documents: OpenAiServer) -> None:
    Path("questions.txt").write_text("how fast may I ask?\n")
    documents.reply = lambda _: "no JSON"
    [first] = nights.attempts()
    assert first.outcome is Outcome.ERROR
    assert first.cost_usd > 0
    documents.reply = judge
    nights.have("nightly_contradictions", budget_usd=first.cost_usd)
    [again] = nights.attempts(days=0.1)
    assert again.outcome is Outcome.BUDGET_EXCEEDED
    assert "nightly_contradictions.budget_usd" in again.detail


def test_an_attempt_beyond_its_deadline_has_its_cost_and_the_next_pays_for_no_reply_again(
    nights: Nights, documents: OpenAiServer
) -> None:
    Path("questions.txt").write_text("".join(f"how fast may I ask, {number}?\n" for number in range(12)))

    def slow_after_eight(document: dict[str, Any]) -> str:
        if sum(documents.asked.values()) > 8:
            time.sleep(1.0)
        return judge(document)

    documents.reply = slow_after_eight
    nights.have("evals", deadline_minutes=0.05)
    [late] = nights.attempts()
    assert late.outcome is Outcome.ERROR
    assert "evals.deadline_minutes" in late.detail
    assert late.cost_usd >= documents.nano / 1e9 > 0
    asked = sum(documents.asked.values())
    assert 0 < asked < 24
    documents.reply = judge
    nights.have("evals", deadline_minutes=5.0)
    [found] = nights.attempts(days=0.1)
    assert (found.outcome, found.cases) == (Outcome.PASS, 12)
    assert sum(documents.asked.values()) <= 24 + 4, "at most the calls that were in flight are repeated"
    [next_night] = nights.attempts(days=1)
    assert next_night.cost_usd > found.cost_usd, "another night asks again"


def test_the_deadline_includes_asking_the_system_for_its_documents(nights: Nights, documents: OpenAiServer) -> None:
    Path("questions.txt").write_text("how fast may I ask?\n")
    Path("night_search.py").write_text(
        SEARCH.replace("def search", "import asyncio\n\nasync def search").replace(
            "    ids =", "    await asyncio.sleep(20)\n    ids ="
        )
    )
    nights.have("evals", deadline_minutes=0.02)
    began = time.monotonic()
    [late] = nights.attempts()
    assert time.monotonic() - began < 15
    assert (late.outcome, late.detail) == (Outcome.ERROR, "not done within 0.02 minutes (evals.deadline_minutes)")
    assert documents.asked.total() == 0


def test_a_night_with_a_verdict_on_less_than_half_of_its_pairs_is_an_error(
    nights: Nights, documents: OpenAiServer
) -> None:
    questions = [f"how fast may I ask, {number}?" + " [malformed]" * (number > 4) for number in range(12)]
    Path("questions.txt").write_text("".join(f"{question}\n" for question in questions))
    [found] = nights.attempts()
    assert (found.outcome, found.errored) == (Outcome.ERROR, 7)
    assert found.detail == "only 5 of 12 pairs have a verdict"
    Path("questions.txt").write_text("".join(f"{question}\n" for question in questions[:10]))
    assert nights.outcomes(days=1) == [Outcome.PASS], "half of them have one"


def test_a_night_of_longmemeval_with_labels_for_less_than_half_of_its_answers_is_an_error(
    nights: Nights, documents: OpenAiServer
) -> None:
    first = iter(["yes"])  # not by the number of requests: several arrive before one is answered
    documents.reply = lambda _: next(first, "neither")
    nights.have("nightly_contradictions", queries=None)
    nights.have("nightly_longmemeval", dataset=nights.folder / "lme.json", judge="openai")
    [found] = nights.attempts()
    assert found.outcome is Outcome.ERROR
    assert found.detail == "only 1 of 24 questions have an answer and a verdict"
    documents.reply = lambda _: "yes"
    assert nights.outcomes(days=0.1) == [Outcome.PASS]


def test_a_budget_below_one_call_is_named_and_is_no_broken_judge(nights: Nights, documents: OpenAiServer) -> None:
    Path("questions.txt").write_text("how fast may I ask?\n")
    nights.have("nightly_contradictions", budget_usd=0.0005)
    [found] = nights.attempts()
    assert documents.asked.total() == 0
    assert found.outcome is Outcome.BUDGET_EXCEEDED
    assert found.detail == "1 pairs went unjudged: nightly_contradictions.budget_usd was used up"


def test_questions_without_a_system_are_refused(nights: Nights, documents: OpenAiServer) -> None:
    nights.have("nightly_contradictions", target=None)
    with pytest.raises(OperationError, match=r"nightly_contradictions\.target"):
        nights.attempts()
