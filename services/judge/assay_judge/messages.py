"""Wording of the judge's alerts and of the details of its scores. Pure."""

from typing import Literal

#: Details of a skipped answer, by the ledger's reply.
SKIPPED = {
    "budget": "judge.budget_usd_per_day is used up for this project",
    "all_budgets": "judge.budget_usd_per_day_all_projects is used up",
}
#: The commands that judge an answer or a session again.
REJUDGE = "assay judge rejudge"
REJUDGE_SESSIONS = "assay sessions judge --again"
NO_CLAIM = "the answer makes no claim"
EMPTY_ANSWER = "the answer is empty"
NO_PASSAGES = "the answer has no passages"
INPUT_TOO_LARGE = "InputTooLarge: above judge.max_input_bytes"
TOO_LONG_FOR_LEXICAL = "TooLong: more comparisons than the lexical judge makes for one answer"
NO_TIME_LEFT = " (no time left: judge.deadline_s)"
NO_BATCH_RESULT = "Batch: no result was returned"

JUDGING_RESUMED = "Judging resumed."
BUDGET_AVAILABLE = "The budget for judging is available again."
JUDGE_RECOVERED = "Judge results are back to baseline."


def interrupted(command: str) -> str:
    """Return the detail of a call whose judge died. `command` makes the call again."""
    return f"Interrupted: the judge died during the call, which may have been billed; {command} asks again"


def foreign_claims(count: int) -> str:
    """Return the detail of a score some of whose claims were ignored; empty for none."""
    return f"{count} claims of the reply are not in the answer" if count else ""


def judging_stopped(why: str) -> str:
    """Return the summary of a stop."""
    return f"Judging stopped: {why}. Answers wait in Redis."


def budget_used_up(usd_per_day: float, scope: Literal["project", "all"]) -> str:
    """Return the summary of a used-up budget."""
    whose = " for all projects together" if scope == "all" else ""
    return (
        f"The judge's budget of {usd_per_day:g} USD per day{whose} is used up;"
        " further answers are recorded as skipped_budget."
    )


def judge_changed(why: str) -> str:
    """Return the summary of a drift of the judge itself."""
    return f"The judge has changed: {why}."


def fewer_right(right: int, of: int, first: int) -> str:
    """Return the reason for a control round that is significantly worse than the first one."""
    return f"{right} of {of} anchors are judged correctly, in the first round it was {first}"


def obeys_instructions(obeyed: int, of: int) -> str:
    """Return the reason for a control round in which the judge obeyed too often."""
    return f"it obeyed {obeyed} of {of} instructions injected into passages and answers"
