"""`assay migrate`: bring the store's tables up to this version."""

import typer


def migrate() -> None:
    """Create or update the store's databases, tables and views. Safe to repeat; needs the owner's identity."""
    from assay_runtime.config import load_settings
    from assay_runtime.migrations import migrate as apply

    apply(load_settings())
    typer.echo("migrations are up to date", err=True)
