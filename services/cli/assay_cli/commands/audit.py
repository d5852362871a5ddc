"""`assay audit`: verify the audit log, read it, and prove its rows."""

import time
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from assay_cli.exit_codes import FINDING, INCONCLUSIVE, OPERATIONAL
from assay_cli.options import AsJsonLines, AsJsonObject, Comment, DataDirectory, Yes
from assay_cli.output.confirm import agreed
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.rows import show_rows
from assay_cli.output.terminal import echo, emit, ends_quietly, printable
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.time_bounds import moment_ms

audit = typer.Typer(no_args_is_help=True, help="Verify the audit log, list its rows, and prove them to others.")

#: Columns of the table; --json has all.
_COLUMNS = (
    "leaf_index", "occurred_at", "kind", "project", "tool_name", "status", "error_kind", "by", "pii_categories", "fingerprint", "source_id",
)  # fmt: skip
_FINGERPRINT_CHARS = 16
_AGAIN = "run this again when the auditor has written it (assay doctor)"

Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--vkey",
        metavar="KEY",
        help="Public key of the log, as `assay audit key` prints it, or of a witness; repeatable; default: those of the settings, or the "
        "file of the auditor.",
    ),
]
Row = Annotated[str, typer.Argument(metavar="ROW", help="Index of the leaf, or event_id of a tool call.")]


@audit.command()
def verify(
    full: Annotated[bool, typer.Option("--full", help="List every mismatch instead of the first.")] = False,
    since: Annotated[
        str | None,
        typer.Option(
            help="Read only rows written since then: a duration ago (7d) or an ISO 8601 time; default: all. All leaf hashes are read."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of checkpoints that you kept elsewhere; default: none.")
    ] = None,
    vkey: Keys = None,
    record: Annotated[
        bool,
        typer.Option(
            help="Record the outcome, which the console shows; needs the operator's settings. Default: record."
        ),
    ] = True,
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Verify every row, leaf hash, disclosure and checkpoint of the audit log.

    Exit codes: 0 intact; 1 a mismatch; 2 the log could not be read; 3 intact, but leaves are without a signed checkpoint, or, if anchors
    are set, at no anchor, for longer than auditor.max_unanchored_s.
    """
    from assay_operations.audit_log import opened_log
    from assay_operations.audit_verification import Result
    from assay_operations.audit_verification import verify as found
    from assay_operations.audit_verified import record_verification

    since_ms = None if since is None else max(0, moment_ms(since, int(time.time() * 1000), "--since"))
    result = Result()
    first = None
    with ends_quietly(closed=lambda: FINDING if result.mismatches else 0):
        with opened_log(data) as log, Progress(Mode.NONE if as_json else Mode.AUTO) as counter:
            for each in found(
                log, result, since_ms=since_ms, checkpoint=checkpoint, vkeys=vkey or [], progress=counter
            ):
                first = first or each
                if as_json:
                    emit(orjson.dumps({"event": "mismatch", **vars(each)}).decode())
                else:
                    place = "" if each.leaf_index is None else f"row {each.leaf_index + 1} (leaf {each.leaf_index}): "
                    known = f"; expected {each.expected}, actual {each.actual}" if each.expected or each.actual else ""
                    source = f"; source {each.source_id}" if each.source_id else ""
                    echo(printable(f"{place}mismatch, {each.kind}: {each.what}{source}{known}"))
                if not full:
                    break
        intact = not result.mismatches
        is_partial = since_ms is not None or (first is not None and not full)
        if record:
            problem = record_verification(data, result, local_actor(), is_partial=is_partial, first=first)
            result.notes += [problem] if problem else []
        if as_json:
            emit(
                orjson.dumps({"event": "result", "intact": intact, "complete": not is_partial, **vars(result)}).decode()
            )
        elif intact:
            echo(_intact(result))
            for note in result.notes:
                echo(note, err=True)
        else:
            echo(
                f"{result.mismatches:,} mismatch(es)" if full else "stopped at the first mismatch; --full lists all",
                err=True,
            )
    if not intact:
        raise typer.Exit(FINDING)
    if result.too_old:
        where = "at no anchor" if result.at_anchors is not None else "without a checkpoint"
        hint = "see assay audit anchors" if result.at_anchors is not None else "is the auditor running?"
        echo(f"leaves have been {where} for {result.unanchored_s:,.0f} s: {hint}", err=True)
        raise typer.Exit(INCONCLUSIVE)


def _intact(result: Any) -> str:
    behind = f"; {result.leaves - result.anchored:,} not covered yet" if result.anchored < result.leaves else ""
    expired = f"; {result.expired:,} row(s) expired" if result.expired else ""
    erased = f"; {result.erased:,} value(s) erased" if result.erased else ""
    kept = f"; {result.expired_values:,} value(s) expired whose rows are still there" if result.expired_values else ""
    waiting = f"; {result.unfinished:,} row(s) of an unfinished batch" if result.unfinished else ""
    has = result.at_anchors
    lag = f"; anchors have {has:,}" if has is not None and has < result.anchored else ""
    names = len(result.witnesses)
    witnessed = f"; {names} witness(es) cosigned {result.witnessed:,}" if names else ""
    stamped = f"; {result.timestamped:,} time-stamped on {result.timestamped_at}" if result.timestamped else ""
    rest = f"{behind}{lag}{witnessed}{stamped}{expired}{kept}{erased}{waiting}"
    return f"{result.origin}: intact, {result.leaves:,} leaves; checkpoints cover {result.anchored:,}{rest}"


@audit.command("list")
def list_rows(
    tool: Annotated[str, typer.Option(help="Only this tool or operation; default: all.")] = "",
    status: Annotated[str, typer.Option(help="Only this status, for example refused or lost; default: all.")] = "",
    kind: Annotated[
        str, typer.Option(help="Only rows about a tool_call, server_event, lost event or operation; default: all.")
    ] = "",
    service: Annotated[str, typer.Option(help="Only calls of this service; default: all.")] = "",
    actor: Annotated[
        str, typer.Option(help="Only calls of this agent, and operations of this person; default: all.")
    ] = "",
    session: Annotated[str, typer.Option(help="Only calls of this session; default: all.")] = "",
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    since: Annotated[
        str | None,
        typer.Option(help="Only what happened since then: a duration ago (7d) or an ISO 8601 time; default: all."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, max=100_000, help="Maximum number of rows.")] = 50,
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List rows of the audit log, newest first. Does not verify them.

    `by` is the agent or the person of the record that a row is about: (erased) if the name was erased from the log, (sealed) if the
    record is gone and the log has only the digest of the name.
    """
    from assay_operations.audit_log import opened_log
    from assay_operations.audit_proofs import whole_rows
    from assay_operations.audit_reads.row_pages import RowFilter, listed
    from assay_operations.audit_reads.rows import KINDS
    from assay_operations.events.filters import Range

    if kind and kind not in KINDS:
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(KINDS)}", param_hint="--kind")
    since_ms = 0 if since is None else max(0, moment_ms(since, int(time.time() * 1000), "--since"))
    wanted = RowFilter(project, kind, status, tool, service, actor, session)
    rows: list[dict[str, Any]] = []
    left_out = ""
    with ends_quietly(), opened_log(data) as log:
        for page in listed(log, wanted, Range(since_ms), limit):
            left_out = page.left_out
            whole = whole_rows(log, [row.leaf_index for row in page.rows])
            for row in page.rows:
                by = row.who or ("" if row.who_state == "none" else f"({row.who_state})")
                rows.append(whole[row.leaf_index] | {"by": by})
        if not as_json:
            rows = [
                {name: row[name] for name in _COLUMNS}
                | {
                    "pii_categories": row["pii_categories"] or "(none)",
                    "fingerprint": row["fingerprint"][:_FINGERPRINT_CHARS],
                }
                for row in rows
            ]
        show_rows(rows, as_json, "no audit rows")
        if left_out:
            echo(left_out, err=True)


@audit.command()
def show(row: Row, as_json: AsJsonLines = False, data: DataDirectory = DEFAULT_DATA) -> None:
    """Print one row with its personal fields, as far as they are not erased."""
    from assay_operations.audit_log import opened_log
    from assay_operations.audit_proofs import disclosed, found_row

    with ends_quietly(), opened_log(data) as log:
        found = found_row(log, row)
        fields = disclosed(log, found)
        if as_json:
            emit(orjson.dumps({**found, "disclosed": fields}).decode())
            return
        for name, value in {**found, **fields}.items():
            text = "(erased)" if value is None and name in fields else "" if value is None else str(value)
            echo(f"{name:<44} {printable(text)}")


@audit.command()
def prove(row: Row, vkey: Keys = None, data: DataDirectory = DEFAULT_DATA) -> None:
    """Print a proof that a row is in the log. Others verify it without Assay and your store.

    The proof contains the personal fields of the row that are not erased.
    """
    from assay_operations.audit_log import opened_log
    from assay_operations.audit_proofs import proof

    with ends_quietly(), opened_log(data) as log, Progress(Mode.AUTO) as counter:
        bundle = proof(log, row, vkeys=vkey or [], progress=counter)
    emit(orjson.dumps(bundle, option=orjson.OPT_INDENT_2).decode())


@audit.command()
def check(
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="File that `assay audit prove` printed.")],
    vkey: Annotated[str, typer.Option(help="Public key of the log, from a source that you trust.")],
    rotations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Statements of key rotations, as `assay audit key --rotations` prints them; default: those in the proof.",
        ),
    ] = None,
    as_json: AsJsonObject = False,
) -> None:
    """Check a proof, without a store. Exits 1 if it proves nothing.

    A proof that was made before the key was replaced can be checked with the new key, and --rotations.
    """
    from assay_operations.audit_proofs import problem_of_proof

    problem = problem_of_proof(proof, vkey, rotations)
    if as_json:
        emit(orjson.dumps({"proves": not problem, "problem": problem}).decode())
        if problem:
            raise typer.Exit(FINDING)
        return
    if problem:
        echo(f"{printable(str(proof))} proves nothing: {problem}", err=True)
        raise typer.Exit(FINDING)
    echo("the row is in the log")


@audit.command()
def checkpoint(
    submit: Annotated[
        bool, typer.Option("--submit", help="Send it to every anchor now, and print what each answered.")
    ] = False,
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print the newest signed checkpoint. Keep it where the operator of the store cannot change it.

    Exit codes of --submit: 0 every anchor has it; 1 an anchor has another or a longer log of this name; 2 an anchor does not have it.
    """
    from assay_operations.audit_anchors import submit as submitted
    from assay_operations.audit_log import opened_log
    from assay_operations.audit_proofs import newest_note

    with ends_quietly():
        if not submit:
            with opened_log(data) as log:
                note = newest_note(log)
            emit(orjson.dumps({"checkpoint": note}).decode() if as_json else note.removesuffix("\n"))
            return
        note, answers = submitted(data)
        if not as_json:
            emit(note)
        for each in answers:
            if as_json:
                emit(orjson.dumps(vars(each)).decode())
            elif each.problem:
                echo(printable(f"{each.kind} {each.where}: {each.problem}"), err=True)
            else:
                echo(printable(f"{each.kind} {each.where}: has {each.size:,} leaves since {each.at}"))
    if any(each.contradicts for each in answers):
        raise typer.Exit(FINDING)
    if any(each.problem for each in answers):
        raise typer.Exit(OPERATIONAL)


@audit.command()
def anchors(
    vkey: Keys = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the newest checkpoint of each anchor, and its time stamp, into this directory; default: print a list.",
        ),
    ] = None,
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List where signed checkpoints are, with the leaves and the age of each newest one.

    Asks no anchor: see `assay audit checkpoint --submit`.
    """
    from assay_operations.audit_anchors import anchors as places
    from assay_operations.audit_anchors import save as saved
    from assay_operations.audit_log import opened_log

    with ends_quietly(), opened_log(data) as log:
        if save is not None:
            for path in saved(log, save):
                if as_json:
                    emit(orjson.dumps({"file": str(path)}).decode())
                else:
                    echo(printable(str(path)))
            return
        found = [vars(each) for each in places(log, vkey or [])]
        if not as_json:
            found = [
                each
                | {"root": each["root"][:_FINGERPRINT_CHARS], "age_s": "" if each["age_s"] is None else each["age_s"]}
                for each in found
            ]
        show_rows(found, as_json, "no checkpoint")


@audit.command()
def key(
    rotations: Annotated[
        bool,
        typer.Option("--rotations", help="Print the signed statement of each rotation of the key instead of the key."),
    ] = False,
    as_json: AsJsonObject = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print the public key of the log.

    Publish it: a verification is worth as much as the way in which the key reached the verifier.
    """
    from assay_operations.audit_log import opened_log

    with ends_quietly(), opened_log(data) as log:
        chain = log.keys([])
        if as_json:
            emit(orjson.dumps({"vkey": chain.verifiers[0].vkey, "rotations": chain.rotations}).decode())
        elif rotations:
            emit("\n".join(chain.rotations), nl=False)
            if not chain.rotations:
                echo("the key was never replaced", err=True)
        else:
            emit(chain.verifiers[0].vkey)


@audit.command("rotate-key")
def rotate_key(
    yes: Yes = False, comment: Comment = "", as_json: AsJsonObject = False, data: DataDirectory = DEFAULT_DATA
) -> None:
    """Replace the key that signs the log, and print the new public key.

    The auditor records it as a leaf, signs a checkpoint with both keys, and then removes the old private key. Verifications with the old
    public key follow to the new one. Give witnesses the new key: they refuse it until then.
    """
    from assay_operations.audit_key import apply, plan_rotate

    with ends_quietly():
        actor = local_actor(comment)
        plan = plan_rotate(data)

        def show() -> None:
            echo(f"about to replace the key {printable(plan.old_vkey)}", err=True)

        if not agreed(show, "Replace it permanently?", yes=yes, undone="replaced", dry_run=""):
            if as_json:
                emit(orjson.dumps({"rotated": False, "old_vkey": plan.old_vkey, "vkey": plan.old_vkey}).decode())
            return
        new = apply(plan, actor)
        emit(orjson.dumps({"rotated": True, "old_vkey": plan.old_vkey, "vkey": new}).decode() if as_json else new)


@audit.command()
def erase(
    subject: Annotated[
        str,
        typer.Option(help="Name to erase, exactly as `assay audit show` prints it, for example a caller or a person."),
    ],
    yes: Yes = False,
    comment: Comment = "",
    as_json: AsJsonObject = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Erase a name from the audit log permanently.

    Its rows, their hashes and every proof stay as they are. The values and salts behind the digests are deleted. Tool calls and audit
    records outside of the log are not changed. Only values that are exactly the name are erased; the number of those that contain it, in
    any case, is printed. To erase such a value, pass it as a whole. Waits until the auditor has written and signed the record of this
    operation, up to auditor.checkpoint_s and two minutes, before it deletes anything.
    """
    from assay_operations.audit_erase import apply, plan_erase

    with ends_quietly():
        actor = local_actor(comment)
        with Progress(Mode.NONE if as_json else Mode.AUTO) as counter:
            plan = plan_erase(data, subject=subject, progress=counter)
        found = f"{len(plan.digests):,} value(s) in {plan.rows:,} row(s) of the audit log"
        if plan.similar and not as_json:
            echo(
                f"{plan.similar:,} other value(s) contain this name, and are not erased: see assay audit erase --help",
                err=True,
            )
        if plan.behind and not as_json:
            echo(f"{plan.behind:,} value(s) are in rows that have no leaf yet, and stay: {_AGAIN}", err=True)

        def show() -> None:
            echo(f"about to erase {found}", err=True)

        agrees = not plan.digests or agreed(show, "Erase them permanently?", yes=yes, undone="erased", dry_run="")
        erased = apply(plan, actor) if agrees else 0
        if as_json:
            counts = {"found": len(plan.digests), "rows": plan.rows, "similar": plan.similar, "behind": plan.behind}
            emit(orjson.dumps(counts | {"erased": erased}).decode())
        elif agrees:
            echo(f"erased {erased:,} value(s)")


@audit.command()
def expire(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows, and delete nothing.")] = False,
    yes: Yes = False,
    comment: Comment = "",
    as_json: AsJsonObject = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Delete rows of the audit log that are older than retention.audit_days permanently.

    The hashes of their leaves stay, so that later rows and earlier proofs still verify. Waits until the auditor has written and signed the
    record of this operation, up to auditor.checkpoint_s and two minutes, before it deletes anything.
    """
    from assay_operations.audit_expire import apply, plan_expire

    with ends_quietly():
        actor = local_actor(comment)
        plan = plan_expire(data)
        counts = {"days": plan.days, "before": plan.before, "found": plan.rows}
        if not plan.days or dry_run:
            if as_json:
                emit(orjson.dumps(counts | {"deleted": 0}).decode())
            elif not plan.days:
                echo("rows of the audit log are kept indefinitely: retention.audit_days is 0")
            else:
                echo(f"would delete {_expired(plan)}", err=True)
            return

        def show() -> None:
            echo(f"about to delete {_expired(plan)}", err=True)

        agrees = not plan.rows or agreed(show, "Delete them permanently?", yes=yes)
        deleted = 0
        if agrees:
            with Progress(Mode.NONE if as_json else Mode.AUTO) as counter:
                deleted = apply(plan, actor, progress=counter)
        if as_json:
            emit(orjson.dumps(counts | {"deleted": deleted}).decode())
        elif agrees:
            echo(f"deleted {deleted:,} row(s) of the audit log")


def _expired(plan: Any) -> str:
    return f"{plan.rows:,} row(s) of the audit log below leaf {plan.before:,}, older than {plan.days:,} days"
