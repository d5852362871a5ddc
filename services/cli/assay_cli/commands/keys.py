"""`assay keys`: the keys with which programs send events over HTTP."""

import json
from typing import Annotated

import typer

from assay_access.api_keys import KeyKind
from assay_cli.options import AsJson, AsJsonLines, Comment, DataDirectory, Yes
from assay_cli.output.confirm import agreed
from assay_cli.output.rows import show_rows
from assay_cli.output.terminal import echo, emit
from assay_operations.actor import local_actor
from assay_operations.api_keys.create import apply as apply_create
from assay_operations.api_keys.create import plan_create
from assay_operations.api_keys.listing import listed
from assay_operations.api_keys.records import NewKey
from assay_operations.api_keys.revoke import apply as apply_revoke
from assay_operations.api_keys.revoke import plan_revoke
from assay_operations.api_keys.rotate import apply as apply_rotate
from assay_operations.api_keys.rotate import plan_rotate
from assay_operations.clients import DEFAULT_DATA
from assay_operations.time_bounds import duration_ms

#: Columns of the table. --json has all.
_COLUMNS = ("id", "kind", "project", "name", "state", "created_at", "expires_at")

keys = typer.Typer(no_args_is_help=True, help="Create, list, revoke or rotate the keys of HTTP clients.")

KeyId = Annotated[str, typer.Argument(metavar="ID", help="ID of the key, as in `assay keys list`.")]


@keys.command()
def create(
    kind: Annotated[
        KeyKind,
        typer.Option(help="ingest sends events, feedback is for web pages and sends feedback only, read only reads."),
    ] = KeyKind.INGEST,
    project: Annotated[str, typer.Option(help="Project of everything that is sent with the key.")] = "default",
    name: Annotated[str, typer.Option(help="Where the key is used, for `assay keys list`; default: none.")] = "",
    service: Annotated[
        str | None, typer.Option(help="`service` of events that have none; default: an event must have its own.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Origin of web pages that may use a feedback key, such as https://app.example.com; repeatable."
        ),
    ] = None,
    events_per_second: Annotated[float, typer.Option(help="Maximum rate of events; 0: not limited.")] = 0,
    bytes_per_second: Annotated[float, typer.Option(help="Maximum rate of bytes; 0: not limited.")] = 0,
    expires_in: Annotated[
        str | None, typer.Option(help="Time until the key expires, such as 90d; default: it does not expire.")
    ] = None,
    comment: Comment = "",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Create a key. It is printed once, on stdout; only its SHA-256 is stored."""
    plan = plan_create(
        data,
        kind,
        project,
        name=name,
        service=service,
        origins=tuple(origin or ()),
        events_per_s=events_per_second,
        bytes_per_s=bytes_per_second,
        lifetime_ms=None if expires_in is None else duration_ms(expires_in, "--expires-in"),
    )
    _show(apply_create(plan, local_actor(comment)), as_json)
    if kind is KeyKind.FEEDBACK and not origin:
        echo("no web page can use this key, but any program that has it; for pages, pass --origin", err=True)


@keys.command("list")
def list_keys(
    everything: Annotated[bool, typer.Option("--all", help="List expired and revoked keys too.")] = False,
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List valid keys, the newest first. The keys themselves are not stored, so they cannot be shown."""
    rows = listed(data, project=project, everything=everything)
    shown = rows if as_json else [{column: row[column] for column in _COLUMNS} for row in rows]
    show_rows(shown, as_json, "no keys; make one with: assay keys create")


@keys.command()
def revoke(
    key_id: KeyId,
    yes: Yes = False,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Revoke a key. Running gateways refuse it within 5 seconds; it cannot be made valid again."""
    plan, actor = plan_revoke(data, key_id), local_actor(comment)
    what = f"{plan.kind} key {plan.key_id} of project {plan.project}{f' ({plan.name})' if plan.name else ''}"

    def show() -> None:
        echo(f"about to revoke the {what}", err=True)

    if not agreed(show, "Revoke it permanently?", yes=yes, undone="revoked", dry_run=""):
        return
    apply_revoke(plan, actor)
    echo(f"revoked the {what}")


@keys.command()
def rotate(
    key_id: KeyId,
    grace: Annotated[str, typer.Option(help="How long the old key stays valid, such as 2h.")] = "24h",
    comment: Comment = "",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print a new key with the same rights, and let the old one expire after the grace period."""
    plan = plan_rotate(data, key_id, duration_ms(grace, "--grace"))
    done = apply_rotate(plan, local_actor(comment))
    _show(done.new, as_json)
    echo(f"key {done.old_id} expires at {done.old_expires_at.isoformat(timespec='seconds')}", err=True)


def _show(new: NewKey, as_json: bool) -> None:
    """Print a key: alone on stdout, so that a program can read it; what it is goes to stderr."""
    record = new.record
    if as_json:
        emit(json.dumps({"key": new.key, **record.model_dump(mode="json", exclude={"sha256"})}))
        return
    emit(new.key)
    echo(f"{record.kind.value} key {record.id} of project {record.project}; it is not shown again", err=True)
