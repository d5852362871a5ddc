"""Custom scores of an answer, each a metric `score:NAME` from 0 to 1, for all cases or for one.

A run's scorers apply to each case that has an answer (`query_type` is not `null`), functions to all; a case's own apply
to it regardless of its type. A missing answer scores 0, or a system could improve by saying nothing. If a case has several
scores of one name, its score is their mean.
"""

import ast
import asyncio
import hashlib
import inspect
import math
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import orjson

from assay_evals.dataset.model import Case
from assay_evals.dataset.scorer_specs import SCORE, TYPES, ScorerSpec, ScorerUsageError
from assay_evals.error_location import error_location
from assay_evals.errors import EvalsError, ScorerError, TargetUsageError
from assay_evals.field_names import nearest
from assay_evals.metrics.answer_coverage import is_answerable
from assay_evals.metrics.case_metrics import answer_f1
from assay_evals.strict_json import JsonError, loads
from assay_evals.target.response import TargetResponse
from assay_evals.target.targets import load_function
from assay_runtime.expressions import found

#: Prefix of the names of scorers' metrics.
Rubric = Callable[[str, Case, str], Awaitable[float | None]]


class Scoring:
    """The scorers of a run. Pass it to `evaluate_into`; `close` it afterwards."""

    def __init__(
        self, specs: Sequence[ScorerSpec] = (), *, rubric: Rubric | None = None, deadline_s: float = 30.0
    ) -> None:
        """Set up the scorers. Raises `ScorerUsageError` for a duplicate name, and for a missing function."""
        names = [spec.metric for spec in specs]
        if again := next((name for name in names if names.count(name) > 1), None):
            raise ScorerUsageError(f"two scorers are called {again.removeprefix(SCORE)}: give one another name")
        self.specs = tuple(specs)
        self._rubric = rubric
        self._deadline_s = deadline_s
        self._functions = {str(spec.value): _function(spec) for spec in specs if spec.type == "function"}
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="scorer") if self._functions else None

    @property
    def digests(self) -> dict[str, str]:
        """Identity of each scorer in a run, by metric. A changed function is a different scorer."""
        return {spec.metric: self._digest(spec) for spec in self.specs}

    def _digest(self, spec: ScorerSpec) -> str:
        source = _source(spec, self._functions[str(spec.value)]) if spec.type == "function" else ""
        return hashlib.sha256((spec.digest + source).encode()).hexdigest()[:12] if source else spec.digest

    def rubrics(self, cases: Iterable[Case]) -> set[str]:
        """Return the metrics that a model gives."""
        return {spec.metric for spec in self._all(cases) if spec.type == "rubric"}

    def expect_judge(self, cases: Iterable[Case]) -> None:
        """Raise `EvalsError` for a rubric without a model."""
        if self._rubric is None and (asks := next((spec for spec in self._all(cases) if spec.type == "rubric"), None)):
            raise EvalsError(
                f"{asks.metric} is a rubric, which a model answers: name one with --judge anthropic or openai (every night: evals.judge)"
            )

    def _all(self, cases: Iterable[Case]) -> list[ScorerSpec]:
        """Return the run's scorers, and those of its cases."""
        return [*self.specs, *(spec for case in cases for spec in case.scorers)]

    async def __call__(self, case: Case, answer: TargetResponse) -> dict[str, float | None]:
        """Return all scores of one answer. Raises `ScorerError`."""
        scores: dict[str, list[float | None]] = {}
        for spec in (*self._of_run(case), *case.scorers):
            scores.setdefault(spec.metric, []).append(await self._score(spec, case, answer))
        return {name: _mean(values) for name, values in scores.items()}

    def _of_run(self, case: Case) -> list[ScorerSpec]:
        return [
            spec
            for spec in self.specs
            if spec.type == "function"
            or (
                is_answerable(case.query_type)
                and (spec.type != "similarity" or spec.value is not None or case.expected_answer)
            )
        ]

    async def _score(self, spec: ScorerSpec, case: Case, answer: TargetResponse) -> float | None:
        if spec.type == "function":
            return await self._call(spec, case, answer)
        if answer.answer is None or not answer.answer.strip():
            return 0.0
        if spec.type == "rubric":
            if self._rubric is None:
                raise ScorerError(f"{spec.metric} needs --judge")
            return await self._rubric(str(spec.value), case, answer.answer)
        return text_score(spec, answer.answer, case.expected_answer)

    async def _call(self, spec: ScorerSpec, case: Case, answer: TargetResponse) -> float | None:
        function = self._functions[str(spec.value)]
        try:
            async with asyncio.timeout(self._deadline_s):
                if inspect.iscoroutinefunction(function):
                    value = await function(case, answer)
                else:
                    value = await asyncio.get_running_loop().run_in_executor(self._threads, function, case, answer)
        except TimeoutError as error:
            raise ScorerError(f"{spec.metric}: no score within {self._deadline_s:g} s") from error
        except BaseException as error:  # also `sys.exit()`: a scorer must not end the run as if it had passed
            task = asyncio.current_task()
            if isinstance(error, GeneratorExit) or (
                isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
            ):
                raise
            place = error_location(error)
            raise ScorerError(f"{spec.metric}: {type(error).__name__}{f' (at {place})' if place else ''}") from error
        return _checked(spec, value)

    def close(self) -> None:
        """Release the threads; a call in progress runs to its end."""
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _checked(spec: ScorerSpec, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        kind = f"the number {value}" if isinstance(value, int | float) else type(value).__name__
        raise ScorerError(
            f"{spec.metric}: the function returned {kind}: return a number from 0 to 1, a boolean, or None"
        )
    return number


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if any value is unknown, since the others alone might look better."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present and len(present) == len(values) else None


def _function(spec: ScorerSpec) -> Callable[..., Any]:
    module, _, name = str(spec.value).partition(":")
    try:
        function = load_function(module, name)
    except TargetUsageError as error:
        near = nearest(module, TYPES).replace("did you mean", "or did you mean the type")
        raise ScorerUsageError(f"{spec.metric}: {error}{near}") from None
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise ScorerUsageError(f"{spec.metric}: {name} cannot be called with (case, answer): {error}") from None
    except ValueError:  # a function of C code may have no signature
        pass
    return function


def _source(spec: ScorerSpec, function: Callable[..., Any]) -> str:
    """Return the normalized source of a function's module, and of the module that named it.

    A change of helpers and constants in the function's module, or of the class of a callable object, therefore makes a
    different scorer; other imports are not read. Empty if there is no source.
    """
    made_by: Any = inspect.unwrap(function)
    while isinstance(made_by, partial):
        made_by = inspect.unwrap(made_by.func)
    made_in = inspect.getmodule(made_by) or inspect.getmodule(type(made_by))
    if made_in and made_in.__name__.partition(".")[0] in sys.stdlib_module_names:
        made_in = None  # Python's own, which each version has another of
    named = sys.modules.get(str(spec.value).partition(":")[0])
    return "".join(_said(module) for module in dict.fromkeys((named, made_in)) if module)


def _said(module: ModuleType) -> str:
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):  # built in, or made while running
        return ""
    try:
        return ascii(_shape(ast.parse(source)))
    except (SyntaxError, RecursionError):  # nested more deeply than Python goes: comments and layout count then
        return source


def _shape(part: Any) -> Any:
    """Return a syntax tree in a form equal for all Python versions: without empty fields, which vary."""
    if isinstance(part, list):
        return [_shape(each) for each in part]
    if not isinstance(part, ast.AST):
        return part
    fields = ((name, value) for name, value in ast.iter_fields(part) if value is not None and value != [])
    return type(part).__name__, [(name, _shape(value)) for name, value in fields]


def text_score(spec: ScorerSpec, answer: str, expected: str | None = None) -> float | None:
    """Return the score of a text by a scorer that needs nothing else. Raises `ScorerError`."""
    texts, said = spec.texts, answer.strip()
    if spec.ignore_case:
        texts, said = [text.casefold() for text in texts], said.casefold()
    match spec.type:
        case "contains":
            return float(all(text in said for text in texts))
        case "not_contains":
            return float(not any(text in said for text in texts))
        case "equals":
            return float(said in {text.strip() for text in texts})
        case "regex":
            return float(found(spec.pattern, answer))
        case "json_schema":
            return float(_fits(spec, answer))
    reference = spec.value if isinstance(spec.value, str) else expected
    return None if reference is None else answer_f1(reference, answer)


def _fits(spec: ScorerSpec, answer: str) -> bool:
    try:
        value = loads(answer)
    except JsonError:
        return False
    assert isinstance(spec.value, dict)
    try:
        return bool(_validator(orjson.dumps(spec.value)).is_valid(value))
    except Exception as error:  # a reference that leads nowhere, or in a circle
        raise ScorerError(f"{spec.metric}: the schema cannot be applied: {type(error).__name__}") from error


@lru_cache(maxsize=1_000)
def _validator(schema: bytes) -> Any:
    """Return a validator that fetches nothing, and uses RE2 for patterns."""
    import referencing
    from jsonschema import Draft202012Validator, ValidationError, validators

    def pattern(_: Any, wanted: str, instance: Any, __: Mapping[str, Any]) -> Any:
        if isinstance(instance, str) and not found(wanted, instance):
            yield ValidationError("does not match")

    kind: Any = validators.extend(Draft202012Validator, {"pattern": pattern})  # type: ignore[no-untyped-call]
    return kind(orjson.loads(schema), registry=referencing.Registry())
