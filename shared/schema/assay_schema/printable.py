"""Make untrusted text safe to show: terminals and logs obey control characters, and people trust it.

Pure.
"""

import re


def printable(text: str) -> str:
    """Replace control, format and bidirectional characters and line breaks by spaces: one line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def printable_lines(text: str) -> str:
    """Replace control, format and bidirectional characters by spaces, but keep line feeds and tabs."""
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)


#: `<!channel>`, `<@U1>`, `<a href>`; `[text](link)`; code; pipes of a table or a command.
_MARKUP = str.maketrans("<>[]`|", "\u2039\u203a()'\u00a6")
#: `@everyone`, but not the `@` of `ndcg@10`.
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@|@(?![0-9])")


def plain(text: str) -> str:
    """Return one line without mentions, markup and links, for chats and Markdown.

    Look-alike characters replace them, so the length stays the same.
    """
    shown = printable(text).translate(_MARKUP).replace("://", ":\uff0f\uff0f")
    return _MENTION.sub("\uff20", shown)


#: First characters that make a spreadsheet read a cell as a formula, directly or after trimming; full-width forms included.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")


def no_formula(text: str) -> str:
    """Escape text that a spreadsheet would run as a formula with a leading `'`. Numbers stay."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
