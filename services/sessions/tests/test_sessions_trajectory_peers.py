"""Trajectory metrics beside the packages that define them. Run where they are installed: `pip install google-adk agentevals`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from assay_sessions.trajectory import ToolCall, compare
from assay_sessions.trajectory_args import EXACT, IGNORE_ARGS
from tests.support.trajectories import trajectory_pairs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("ignore_args", [False, True])
@pytest.mark.parametrize("metric", ["exact", "in_order", "any_order"])
def test_adk_gives_each_random_pair_the_same_score(metric: str, ignore_args: bool) -> None:
    pytest.importorskip("google.adk", reason="needs google-adk")
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
    from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
    from google.genai.types import Content, FunctionCall

    def invocation(calls: Sequence[ToolCall]) -> Invocation:
        uses = [FunctionCall(name=call.name, args=dict(call.args)) for call in calls]
        return Invocation(user_content=Content(parts=[]), intermediate_data=IntermediateData(tool_uses=uses))

    kind = ToolTrajectoryCriterion.MatchType[metric.upper()]
    criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=kind, ignore_args=ignore_args)
    evaluator = TrajectoryEvaluator(
        eval_metric=EvalMetric(metric_name="tool_trajectory_avg_score", criterion=criterion)
    )
    pairs = trajectory_pairs()
    found = evaluator.evaluate_invocations(
        [invocation(predicted) for _, predicted in pairs], [invocation(reference) for reference, _ in pairs]
    )
    matching = IGNORE_ARGS if ignore_args else EXACT
    ours = [compare(*pair, matching).values()[metric] for pair in pairs]
    assert ours == [each.score for each in found.per_invocation_results]
    assert 0 < sum(map(bool, ours)) < len(ours)


@pytest.mark.parametrize("mode", ["exact", "ignore"])
@pytest.mark.parametrize("metric", ["superset", "unordered"])
def test_agentevals_gives_each_random_pair_the_same_score(
    metric: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("agentevals", reason="needs agentevals")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    import orjson
    from agentevals.trajectory.match import create_trajectory_match_evaluator

    def messages(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        made = [
            {
                "id": "",
                "type": "function",
                "function": {"name": each.name, "arguments": orjson.dumps(each.args).decode()},
            }
            for each in calls
        ]
        return [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": made}]

    create: Callable[..., Any] = create_trajectory_match_evaluator
    evaluate = create(trajectory_match_mode=metric, tool_args_match_mode=mode)
    matching = IGNORE_ARGS if mode == "ignore" else EXACT
    ours, theirs = [], []
    for reference, predicted in trajectory_pairs():
        ours.append(compare(reference, predicted, matching).values()[metric])
        theirs.append(float(evaluate(outputs=messages(predicted), reference_outputs=messages(reference))["score"]))
    assert ours == theirs
    assert 0 < sum(map(bool, ours)) < len(ours)
