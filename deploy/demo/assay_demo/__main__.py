"""`python -m assay_demo`: start the search service, ask it every question, and capture the answers.

Progress goes to stderr. The last line of stdout is one JSON object: captured, planted, questions, seconds, stats,
degraded_ms (Unix milliseconds from which the retriever was degraded, or null), agent (what it did, or null).
Exit codes: 0 all events are in Redis or in the spool, 1 some are lost, 2 capture is off or the arguments are wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_capture import Capture, SettingsError
from assay_capture.configuration import read_settings
from assay_capture.owners import default_spool_dir
from assay_demo.abstaining import refuses
from assay_demo.corpus import load_corpus
from assay_demo.driver import Pace, Plan, Tally, drive
from assay_demo.golden import read_cases
from assay_demo.leftover import events_since, leftover
from assay_demo.regression import Regressed
from assay_demo.search import Search
from assay_demo.service import SearchService
from assay_schema.ids import new_event_id

if TYPE_CHECKING:
    from assay_demo.agent.player import Agent

SERVICE = "stdlib-search"
_PROGRESS_EVERY_S = 2.0
#: Events per second of a scenario: slow enough for half a minute before the fault and half a minute after it.
SCENARIO_RATE = 22.0

_SCENARIOS = {
    "regression": "the retriever is degraded",
    "abstaining": "nine questions in ten are refused",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the demo once. Returns the exit code."""
    options = _parser().parse_args(arguments)
    progress = Progress(as_json=options.json)
    try:
        capture = Capture.from_env(service=SERVICE)
    except SettingsError as error:
        progress.say(str(error))
        return 2
    if not capture.enabled:
        progress.say(
            "capture is switched off, so nothing would be captured. Set ASSAY_CAPTURE=1; "
            "capture.enabled = false in assay.toml takes precedence."
        )
        return 2
    rate = options.rate or (SCENARIO_RATE if options.scenario else 0.0)
    plan = Plan(rounds=options.rounds, rate=rate, limit=options.limit, seed=options.seed, pii=options.pii)
    started, first_id = time.monotonic(), new_event_id()
    tally = Tally()
    degraded_ms: int | None = None
    agent: Agent | None = None
    prefix = f"demo-{time.time_ns() // 1_000_000_000:x}-"
    interrupted = False
    try:
        progress.say("reading the documentation of the standard library")
        search = Search(load_corpus())
        progress.say(f"indexed {len(search.corpus)} documents", documents=len(search.corpus))
        service = SearchService(search, capture, seed=plan.seed)
        pace = Pace(plan.rate)
        half = plan.questions(read_cases()) // 2 if options.scenario else None
        for tally in drive(service, read_cases(), plan, pace):
            progress.tick(tally, pace.elapsed)
            if tally.questions == half:
                if options.scenario == "abstaining":
                    service.refuses = refuses
                else:
                    service.retriever = Regressed(search)
                degraded_ms = time.time_ns() // 1_000_000
                progress.say(f"from question {half + 1} on, {_SCENARIOS[options.scenario]}", questions=half)
        if options.agent_log:
            agent = _agent(search, service, capture, options.seed)
            progress.say("an agent plays its sessions")
            agent.play(options.agent_log, prefix)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        capture.close()
    if agent:
        tally.captured.update(agent.counts.captured)
    stats = dataclasses.asdict(capture.stats())
    report = {
        "captured": dict(tally.captured),
        "planted": dict(tally.planted),
        "questions": tally.questions,
        "seconds": round(time.monotonic() - started, 3),
        "stats": stats,
        "degraded_ms": degraded_ms,
        "agent": agent and {"prefix": prefix, "tool_calls": agent.counts.tool_calls, "sessions": agent.counts.sessions},
    }
    lost = sum(stats["dropped"].values()) + stats["queue_entries"]
    if lost:
        progress.say(
            f"{lost} of {stats['captured']} event(s) are lost; is Redis up at ASSAY_REDIS_URL?",
            lost=lost,
        )
    spool_dir = read_settings(os.environ).capture.spool_dir or default_spool_dir()
    left = leftover(stats, events_since(spool_dir, SERVICE, first_id) if stats["adopted_segments"] else 0)
    if left.waiting:
        progress.say(
            f"{left.waiting} event(s) wait in the spool until Redis at ASSAY_REDIS_URL is back", spooled=left.waiting
        )
    if left.earlier_sent:
        progress.say(f"{left.earlier_sent} event(s) of an earlier process were sent too", earlier=left.earlier_sent)
    print(json.dumps(report), flush=True)
    return 130 if interrupted else 1 if lost else 0


def _agent(search: Search, service: SearchService, capture: Capture, seed: int) -> Agent:
    """Return the agent. Importing the MCP server takes a second."""
    from assay_demo.agent.player import Agent
    from assay_demo.agent.scenes import read_scenes

    return Agent(read_scenes(), search, service, capture, seed=seed)


class Progress:
    """Progress on stderr: lines of plain text, or one JSON object each."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._last = 0.0

    def say(self, message: str, **fields: Any) -> None:
        """Print a message immediately."""
        line = json.dumps({"message": message, **fields}) if self._as_json else f"assay_demo: {message}"
        print(line, file=sys.stderr, flush=True)

    def tick(self, tally: Tally, elapsed: float) -> None:
        """Print the progress of the run, at most every two seconds."""
        if elapsed - self._last >= _PROGRESS_EVERY_S:
            self._last = elapsed
            self.say(
                f"{tally.questions} questions, {tally.events} events, {tally.events / elapsed:.0f} events/s",
                questions=tally.questions,
                events=tally.events,
                seconds=round(elapsed, 1),
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m assay_demo", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rounds", type=_at_least(0), default=1, help="number of rounds over the golden questions (default 1)"
    )
    parser.add_argument("--rate", type=_rate, default=0.0, help="events per second; 0 (default) is as fast as possible")
    parser.add_argument(
        "--limit", type=_at_least(1), help="maximum number of questions per round, and of those with personal data"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of the order, tools, feedback and planted values (default 0)"
    )
    parser.add_argument(
        "--pii",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="ask questions with planted personal data too",
    )
    parser.add_argument(
        "--scenario",
        choices=list(_SCENARIOS),
        help=f"what happens half-way: {'; '.join(f'{name}: {what}' for name, what in _SCENARIOS.items())}; "
        f"paced at {SCENARIO_RATE:g} events/s unless --rate is set",
    )
    parser.add_argument("--agent-log", type=Path, help=argparse.SUPPRESS)  # play the agent's sessions and log them here
    parser.add_argument("--json", action="store_true", help="progress on stderr as JSON lines")
    return parser


def _at_least(least: int) -> Any:
    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more")
        return number

    return whole


def _rate(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 (as fast as possible) or a number of events per second")
    return number


if __name__ == "__main__":
    sys.exit(main())
