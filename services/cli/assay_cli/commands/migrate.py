"""`assay migrate`: create or update the tables of the store."""

from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo
from assay_operations.clients import DEFAULT_DATA, settings_for


def migrate(data: DataDirectory = DEFAULT_DATA) -> None:
    """Create or update the store's databases, tables and views.

    Safe to repeat; needs the credentials of `owner`.
    """
    settings = settings_for("owner", data)
    from assay_runtime.migrate import migrate as apply

    for migration in apply(settings):
        echo(f"applied {migration.name}", err=True)
    echo("the store's tables are up to date", err=True)
