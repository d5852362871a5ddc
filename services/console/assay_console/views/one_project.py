"""The project of pages that are about exactly one."""

from assay_console.page import Ask
from assay_operations.overview.frame import frame_facts


async def project_of(ask: Ask) -> tuple[str, tuple[str, ...]]:
    """Return the project of the link, or the only one.

    If there are several, the project is empty, and their names are there to choose from.
    """
    if ask.scope.project:
        return ask.scope.project, ()
    names = (await ask.rollup(frame_facts, "")).projects
    return (names[0], ()) if len(names) == 1 else ("", names)
