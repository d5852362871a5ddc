"""The place where a long text of a session is cut, so that nothing is hidden from the scrubber. Pure.

Each part of a session is scrubbed on its own. A cut through a secret, or between a secret and the word that announces it, would leave
both halves in the store.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay_sessions.text_cut import natural_cut

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber

#: Characters on each side of a cut that are searched. Longer secrets, such as a private key, have lines within that are found alone.
WINDOW = 4_096
#: Places that are tried, each before the last one.
TRIES = 8


def safe_cut(scrubber: "Scrubber") -> Callable[[str, int], int]:
    """Return a function that chooses a cut through which the scrubber finds the same in both halves.

    If there is no such place, it is the first one that is natural.
    """

    def cut(text: str, most: int) -> int:
        first = at = natural_cut(text, most)
        for _ in range(TRIES):
            if _changes_nothing(scrubber, text[max(0, at - WINDOW) : at], text[at : at + WINDOW]):
                return at
            if at <= most // 2:
                break
            at = natural_cut(text[:at], at - 1)
        return first

    return cut


def _changes_nothing(scrubber: "Scrubber", left: str, right: str) -> bool:
    whole = [(each.start, each.end) for each in scrubber.scrub(left + right).findings]
    halves = [(each.start, each.end) for each in scrubber.scrub(left).findings]
    halves += [(each.start + len(left), each.end + len(left)) for each in scrubber.scrub(right).findings]
    return whole == halves
