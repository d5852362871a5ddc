"""`assay eval longmemeval`: evaluate a memory on the LongMemEval benchmark."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.option_groups import grouped
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.target_errors import ErrorsOfTarget
from assay_cli.output.terminal import echo, emit, ends_quietly, kept_stdout, own_stdout
from assay_cli.target_options import ShowErrors, Workspace
from assay_operations.evaluations.longmemeval import LongMemEvalRequest, prepare_longmemeval
from assay_operations.evaluations.target import TargetConfig

if TYPE_CHECKING:
    from assay_evals.longmemeval.results import Result


@dataclass(frozen=True)
class MemoryOptions:
    """The memory, and how it is queried."""

    target: Annotated[
        str,
        typer.Option(
            help="Memory to ask: http://host/path, module:function, 'command: program --flag', or bm25, a memory in this process."
        ),
    ] = "bm25"
    ingest: Annotated[
        str | None,
        typer.Option(help="Target that receives the sessions of each question first; default: the same as --target."),
    ] = None
    workspace: Workspace = None
    concurrency: Annotated[int, typer.Option(help="Number of questions at a time.")] = 4
    deadline: Annotated[float, typer.Option(help="Timeout of one question in seconds, with ingestion and retries.")] = (
        600.0
    )
    retries: Annotated[int, typer.Option(help="Retries per question for errors that may be transient.")] = 2
    show_errors: ShowErrors = False


@dataclass(frozen=True)
class BenchmarkOptions:
    """Questions, the judging of answers, and the destination of results."""

    dataset: Annotated[Path, typer.Argument(help="File of LongMemEval (oracle, S or M): a JSON array, or JSON lines.")]
    limit: Annotated[int | None, typer.Option(help="Only the first N questions; default: all.")] = None
    top_k: Annotated[int, typer.Option(help="Number of sessions to request per question, at most 1,000.")] = 10
    retrieval_only: Annotated[
        bool, typer.Option("--retrieval-only", help="Measure retrieval only; judge no answers.")
    ] = False
    keyword_only: Annotated[
        bool, typer.Option("--keyword-only", help="Ask the target for keyword search: tool_name is search.")
    ] = False
    expansion: Annotated[
        bool, typer.Option("--expansion", help="Ask the target to expand questions: expand_enabled is true.")
    ] = False
    model: Annotated[
        str | None,
        typer.Option(
            help="Model of the judge's API that answers from the retrieved sessions; default: the target's own answers."
        ),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="lexical|anthropic|openai",
            help="Judge of the answers; default lexical, an offline baseline.",
            show_default=False,
        ),
    ] = None
    judge_budget: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Budget for all models of this run, in USD; default 1.", show_default=False),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(help="File of labels to use instead of a judge, as evaluate_qa.py writes it; default: none."),
    ] = None
    by_type: Annotated[
        bool, typer.Option("--by-type", help="Add the recall by question type as the last line of the output.")
    ] = False
    by_type_floor: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Exit with 1 if a type's recall is below this, 0 to 1; default: none."),
    ] = None
    output: Annotated[
        Path | None, typer.Option(help="Write one line per question here instead of to stdout, so that --resume works.")
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue with the questions that are missing in --output and those that errored."
        ),
    ] = False
    baseline: Annotated[
        Path | None, typer.Option(help="Output of an earlier run to compare with, question by question; default: none.")
    ] = None


@grouped
def longmemeval(
    options: BenchmarkOptions,
    memory: MemoryOptions,
    progress: Annotated[Mode, typer.Option(help="Format of progress on stderr.")] = Mode.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Evaluate a memory on LongMemEval: retrieval of evidence, and correctness of answers.

    Exit code 0 for any result, 1 if a question type is below --by-type-floor, 2 if nothing could be measured.
    """
    from assay_evals.longmemeval.summary_text import floor_text, summary_text

    if as_json and options.output is None:
        raise CommandError("--json needs --output FILE, because the lines of the questions are printed on stdout")
    errors = ErrorsOfTarget(memory.show_errors)
    system = TargetConfig(
        memory.target, memory.workspace, memory.concurrency, memory.deadline, memory.retries,
        on_error=errors, keep_message=memory.show_errors,
    )  # fmt: skip
    lines = _Lines() if options.output is None else None
    with own_stdout():
        prepared = prepare_longmemeval(LongMemEvalRequest(system=system, ingest=memory.ingest, **vars(options)))

    def kept() -> str:
        count = f"{len(prepared.output.done):,} of {prepared.survey.questions:,} questions are done"
        if options.output is None:
            return f"{count}, and nothing was kept: --output FILE keeps each as it is done"
        return f"{count} and kept; to continue, run the same command with: --resume"

    with ends_quietly(stopped=kept), own_stdout(), Progress(progress) as counter:
        done = prepared.run(counter, lines.add if lines else None)
        if lines and done.by_type:
            lines.emit(done.by_type)
    if prepared.grader and (note := prepared.grader.note()):
        echo(note, err=True)
    if as_json:
        emit(json.dumps(done.summary, ensure_ascii=False, indent=2))
    else:
        echo(summary_text(done.summary, done.compared), err=lines is not None)
    errors.say_how()
    for name, share in done.below.items():
        echo(floor_text(name, share, prepared.floor or 0.0), err=True)
    if done.below:
        raise typer.Exit(FINDING)


class _Lines:
    """Lines of questions on stdout, while what a target prints goes to stderr."""

    def __init__(self) -> None:
        self._out = kept_stdout()

    def add(self, result: "Result") -> None:
        """Print the line of a question."""
        self.emit(result.as_json())

    def emit(self, document: dict[str, Any]) -> None:
        """Print a line."""
        emit(json.dumps(document, ensure_ascii=False), out=self._out)
