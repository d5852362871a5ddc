"""Text from elsewhere, made safe to show: a terminal or a log obeys control characters, and people trust what they see. Pure."""


def printable(text: str) -> str:
    """One line: control, format and bidirectional characters, line breaks included, shown as spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def printable_lines(text: str) -> str:
    """The same, but line feeds and tabs stay."""
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)
