"""A Rich console for tables and colours that filters control characters out of the text."""

from collections.abc import Iterable
from typing import IO

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment

from assay_schema.printable import printable_lines


class Console(RichConsole):
    """A Rich console with the same filter as `terminal.echo`.

    Loading Rich takes time: import this where it is needed.
    """

    def __init__(self, *, width: int | None = None, file: IO[str] | None = None) -> None:
        super().__init__(width=width, file=file, highlight=False)
        self.push_render_hook(_Filter())


class _Filter(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Filtered(each) for each in renderables]


class _Filtered:
    def __init__(self, shown: ConsoleRenderable) -> None:
        self._shown = shown

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> Iterable[Segment]:
        for segment in console.render(self._shown, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
