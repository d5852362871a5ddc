"""A team's rules for sessions: a TOML file, `sessions.toml`. Pure, except for reading the file.

Unknown keys are refused with the nearest known name, because a rule without effect must not look effective.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from assay_schema.problems import in_words
from assay_sessions.checks.behaviour import (
    Answered,
    NoCallAfterRefusal,
    NoFailedCommands,
    NoForbiddenTools,
    NoLoops,
    NotAborted,
    NoTruncatedOutputs,
    NoUnknownTools,
    ReadsBeforeEdits,
    RequiredTools,
)
from assay_sessions.checks.errors import ChecksError
from assay_sessions.checks.limits import MaxCalls, MaxCost, MaxErrors, MaxSeconds, MaxTurns
from assay_sessions.checks.rule import Rule
from assay_sessions.checks.tools import ANY_AGENT, TOOL_NAMES, ToolNames
from assay_sessions.checks.trajectories import (
    TrajectoryAnyOrder,
    TrajectoryExact,
    TrajectoryInOrder,
    TrajectoryPrecision,
    TrajectoryRecall,
    TrajectoryRule,
    TrajectoryUnordered,
)
from assay_sessions.checks.words import NoFalseSuccess, NoSecrets, WordPattern
from assay_sessions.trajectory_args import ArgsMode, Matching

LONGEST_BYTES: Final = 1_000_000

#: All rules by name, in the order of reports.
RULES: Final[Mapping[str, type[Rule]]] = {
    "answered": Answered,
    "not_aborted": NotAborted,
    "no_loops": NoLoops,
    "no_call_after_refusal": NoCallAfterRefusal,
    "reads_before_edits": ReadsBeforeEdits,
    "no_false_success": NoFalseSuccess,
    "no_failed_commands": NoFailedCommands,
    "no_unknown_tools": NoUnknownTools,
    "no_truncated_outputs": NoTruncatedOutputs,
    "no_secrets": NoSecrets,
    "no_forbidden_tools": NoForbiddenTools,
    "required_tools": RequiredTools,
    "max_turns": MaxTurns,
    "max_calls": MaxCalls,
    "max_errors": MaxErrors,
    "max_cost_usd": MaxCost,
    "max_seconds": MaxSeconds,
    "trajectory_exact": TrajectoryExact,
    "trajectory_in_order": TrajectoryInOrder,
    "trajectory_any_order": TrajectoryAnyOrder,
    "trajectory_unordered": TrajectoryUnordered,
    "trajectory_precision": TrajectoryPrecision,
    "trajectory_recall": TrajectoryRecall,
}

Names = Annotated[tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...], Field(max_length=1_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class AgentTools(_Part):
    """Names of one agent's tools by role. A role that is not given keeps its default."""

    read: Names | None = None
    edit: Names | None = None
    write: Names | None = None
    run: Names | None = None


class TrajectoryOptions(_Part):
    """Comparison of arguments with those of reference trajectories."""

    args: ArgsMode = "exact"
    tools: dict[str, ArgsMode] = Field(default_factory=dict)


class RepeatOptions(_Part):
    """Groups of repeated sessions, for pass^k. `by`: `prompt`, or a key of `metadata`."""

    by: Annotated[str, StringConstraints(min_length=1, max_length=200)] = "prompt"
    k: Annotated[int, Field(ge=1, le=100)] = 5


class RulesFile(_Part):
    """The whole file."""

    rules: dict[str, dict[str, Any]] = Field(default_factory=dict)
    patterns: list[WordPattern] = Field(default_factory=list)
    tools: dict[str, AgentTools] = Field(default_factory=dict)
    trajectory: TrajectoryOptions = TrajectoryOptions()
    repeats: RepeatOptions = RepeatOptions()


class Rules:
    """The rules to apply, by name, with the tools of each agent."""

    def __init__(self, file: RulesFile, own: Mapping[str, Rule]) -> None:
        defaults = {name: rule() for name, rule in RULES.items() if _runs_by_default(rule)}
        known = {name: own.get(name) or defaults.get(name) for name in RULES}
        self.by_name: dict[str, Rule] = {name: rule for name, rule in known.items() if rule is not None}
        self.by_name |= {f"pattern:{each.name}": each for each in file.patterns}
        self.matching = Matching(file.trajectory.args, file.trajectory.tools)
        self.repeats = file.repeats
        self.tools: dict[str, ToolNames] = dict(TOOL_NAMES)
        for agent, given in file.tools.items():
            before = self.tools.get(agent, ANY_AGENT)
            roles = {role: frozenset(names) for role, names in given if names is not None}
            self.tools[agent] = ToolNames(
                **{role: roles.get(role, getattr(before, role)) for role in AgentTools.model_fields}
            )

    @property
    def required(self) -> list[str]:
        """Names of the rules whose failure fails the gate."""
        return [name for name, rule in self.by_name.items() if rule.required]


def default_rules() -> Rules:
    """Return the rules without a file: all that need no settings, none of them required."""
    return Rules(RulesFile(), {})


def read_rules(path: Path) -> Rules:
    """Read the rules of a file. Raises `ChecksError`."""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ChecksError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise ChecksError(f"{path}: not UTF-8 text: convert the file, for example with iconv") from None
    if len(raw) > LONGEST_BYTES:
        raise ChecksError(f"{path}: longer than {LONGEST_BYTES:,} bytes")
    try:
        return parse_rules(text)
    except ChecksError as error:
        raise ChecksError(f"{path}: {error}") from None


def parse_rules(text: str) -> Rules:
    """Parse the text of a rules file. Raises `ChecksError`."""
    try:
        parsed = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ChecksError(f"not TOML: {error}") from None
    if not parsed:
        raise ChecksError("no rules: an empty file would check nothing, silently")
    try:
        file = RulesFile.model_validate(parsed)
    except ValidationError as error:
        raise ChecksError(_explain(_with_names(error.errors()[0], parsed), RulesFile)) from None
    names = [each.name for each in file.patterns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ChecksError(f"patterns: two patterns are called {twice}: rename one")
    return Rules(file, {name: _rule(name, given) for name, given in file.rules.items()})


def _rule(name: str, given: Mapping[str, Any]) -> Rule:
    if (kind := RULES.get(name)) is None:
        raise ChecksError(f"rules.{name[:64]}: no rule of that name{_nearest(name, RULES)}")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise ChecksError(_explain(error.errors()[0], kind, f"rules.{name}")) from None


def _runs_by_default(rule: type[Rule]) -> bool:
    """Rules on trajectories run if they are named: the report has the means of all their metrics."""
    needs_settings = any(field.is_required() for field in rule.model_fields.values())
    return not needs_settings and not issubclass(rule, TrajectoryRule)


_PARTS: Final[Mapping[str, type[BaseModel]]] = {
    "patterns": WordPattern,
    "tools": AgentTools,
    "trajectory": TrajectoryOptions,
    "repeats": RepeatOptions,
}


def _with_names(problem: Any, parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem whose place has the name of a pattern instead of its number."""
    place = list(problem["loc"])
    if len(place) > 1 and place[0] == "patterns" and isinstance(place[1], int):
        table = parsed["patterns"][place[1]]
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str) and name.isidentifier():
            place[1] = name
    return {**problem, "loc": tuple(place)}


def _explain(problem: Any, kind: type[BaseModel], table: str = "") -> str:
    """Describe one problem with its key, never a value; for an unknown key, with the known ones."""
    places = [str(part)[:64] for part in problem["loc"]]
    where = ".".join([table, *places] if table else places)
    if problem["type"] == "extra_forbidden":
        inner = _PARTS.get(places[0], kind) if len(places) > 1 else kind
        return f"{where}: unknown key{_nearest(str(problem['loc'][-1]), inner.model_fields)}"
    message = in_words(problem)
    return f"{where}: {message}" if where else message


def _nearest(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name[:200], known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; the valid ones are {', '.join(known)}"
