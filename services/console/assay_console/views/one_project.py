"""The project of pages that are about exactly one."""

from collections.abc import Callable

from assay_console.page import Ask
from assay_operations.overview.frame import frame_facts
from assay_runtime.store import Client


async def project_of(ask: Ask, more: Callable[[Client], tuple[str, ...]] | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the project of the link, or the only one.

    If there are several, the project is empty, and their names are there to choose from. `more` reads projects that may have no events.
    """
    if ask.scope.project:
        return ask.scope.project, ()
    names = (await ask.rollup(frame_facts, "")).projects
    if more is not None:
        names = tuple(sorted({*names, *await ask.rollup(more)}))
    return (names[0], ()) if len(names) == 1 else ("", names)
