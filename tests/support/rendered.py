"""Render what a terminal would show as text."""

import io

from rich.console import Console, RenderableType


def shown(renderable: RenderableType) -> str:
    """Return the text of a renderable, 200 columns wide."""
    text = io.StringIO()
    Console(file=text, width=200).print(renderable, soft_wrap=True)
    return text.getvalue()
