"""Text from elsewhere, made safe to show: a terminal or a log obeys control characters, and people trust what they see. Pure."""

import re


def printable(text: str) -> str:
    """One line: control, format and bidirectional characters, line breaks included, shown as spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def printable_lines(text: str) -> str:
    """The same, but line feeds and tabs stay."""
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)


#: `<!channel>`, `<@U1>`, `<a href>`; `[text](link)`; code; pipes of a table or a command.
_MARKUP = str.maketrans("<>[]`|", "\u2039\u203a()'\u00a6")
#: `@everyone`, but not the `@` of `ndcg@10`.
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@|@(?![0-9])")


def plain(text: str) -> str:
    """One line without mentions, mark-up and links, for chats and Markdown: look-alikes in their place, as many characters."""
    shown = printable(text).translate(_MARKUP).replace("://", ":\uff0f\uff0f")
    return _MENTION.sub("\uff20", shown)
