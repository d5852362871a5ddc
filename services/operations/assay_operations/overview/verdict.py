"""One sentence that says whether the system works. Pure: facts in, sentence and state out."""

from dataclasses import dataclass
from typing import Literal

from assay_ui.formats import counted

State = Literal["good", "warn", "bad"]

#: Usual events in ten minutes from which ten minutes without any are worth a warning.
SILENCE_LEAST = 10.0


@dataclass(frozen=True)
class Facts:
    """Facts about the system now; None is unknown.

    `store_away_s` and `redis_away_s`: seconds since the last answer (0: it has never answered this process); None if it
    answers. `stopped`: steps that do not work although entries wait, in words; `slow`: steps that lag. `unknown`: what could
    not be read while the store answers. `unknown_project`: the project of the link, if no event of it is known.
    `worst`: the critical alert that changed most, and since when, in words. `accepted`: alerts of 24 hours that an operator
    accepted as normal: the levels that raised them may still be there.
    """

    store_away_s: float | None = None
    redis_away_s: float | None = None
    ever: bool | None = True
    events: int | None = None
    usual: float | None = None
    newest_age_s: float | None = None
    lost: int | None = None
    critical: int | None = 0
    worst: str = ""
    warnings: int | None = 0
    quality_alerts: int | None = 0
    judged: bool | None = None
    stopped: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unknown_project: str = ""
    accepted: int = 0


@dataclass(frozen=True)
class Verdict:
    """A state, and the sentence that says why."""

    state: State
    sentence: str


def verdict(facts: Facts) -> Verdict:
    """Say in one sentence whether the system works, worst first."""
    broken = [
        *([f"the store does not answer{_since(facts.store_away_s)}"] if facts.store_away_s is not None else []),
        *(
            [f"Redis does not answer{_since(facts.redis_away_s)}, so producers spool their events"]
            if facts.redis_away_s is not None
            else []
        ),
        *facts.stopped,
    ]
    if facts.unknown_project and not broken:
        return Verdict("warn", f"No event of project {facts.unknown_project} is known.")
    if facts.ever is False and not broken:
        return Verdict("warn", "Waiting for the first event: everything runs, and nothing was captured yet.")
    urgent = [
        *([f"{counted(facts.lost, 'event')} lost in 24 h"] if facts.lost else []),
        *([f"{counted(facts.critical, 'critical alert')} open{_worst(facts)}"] if facts.critical else []),
    ]
    silent = facts.events == 0 and (facts.usual or 0) >= SILENCE_LEAST
    mild = [
        *facts.slow,
        *([f"no event in 10 min, usual are {facts.usual:,.0f}"] if silent else []),
        *([f"{counted(facts.warnings, 'warning')} open"] if facts.warnings else []),
        *([f"not known now: {' and '.join(facts.unknown)}"] if facts.unknown else []),
    ]
    fine = [
        *([f"{counted(facts.events, 'event')} in 10 min"] if facts.events is not None and not silent else []),
        *([f"newest stored {age(facts.newest_age_s)} ago"] if facts.newest_age_s is not None else []),
        *(["none lost in 24 h"] if facts.lost == 0 else []),
        *(["no alert on quality"] if facts.judged and facts.quality_alerts == 0 else []),
        *([f"{counted(facts.accepted, 'alert')} accepted as normal in 24 h"] if facts.accepted else []),
        *(["no open alert"] if facts.critical == facts.warnings == 0 and facts.store_away_s is None else []),
    ]
    head, state = _head(broken, urgent, mild)
    return Verdict(state, f"{head}: {', '.join([*broken, *urgent, *mild, *fine])}.")


def _head(broken: list[str], urgent: list[str], mild: list[str]) -> tuple[str, State]:
    if broken:
        return "Not working", "bad"
    if urgent:
        return "Needs attention", "bad"
    return ("Working, with a warning", "warn") if mild else ("Working", "good")


def _worst(facts: Facts) -> str:
    if not facts.worst:
        return ""
    return f" ({facts.worst})" if facts.critical == 1 else f" (the worst: {facts.worst})"


def _since(seconds: float | None) -> str:
    return f", for {age(seconds)} now" if seconds else ""


def age(seconds: float) -> str:
    """Format an age in its largest unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
