"""The place where a long text of a session is cut, so that nothing is hidden from the scrubber. Pure.

Each part of a session is scrubbed on its own. A cut through a secret, or between a secret and the word that announces it, would leave
both halves in the store.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay_sessions.parts import PartsError
from assay_sessions.text_cut import natural_cut

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber

#: Characters on each side of a cut that are searched.
WINDOW = 4_096
#: Places that are tried, each before the last one.
TRIES = 64
#: Characters to go back where a text has no natural place: further than a name is from its secret.
_BACK = 128


def safe_cut(scrubber: "Scrubber") -> Callable[[str, int], int]:
    """Return a function that chooses a cut through which the scrubber finds the same in both halves.

    It raises `PartsError` if there is no such place: a session that cannot be cut safely is not imported.
    """

    def cut(text: str, most: int) -> int:
        at = natural_cut(text, most)
        for _ in range(TRIES):
            before = _place_before(scrubber, text, at)
            if before is None:
                return at
            if before < 1:
                break
            at = before
        raise PartsError("a long text has no place where a cut would hide nothing from the scrubber")

    return cut


def _place_before(scrubber: "Scrubber", text: str, at: int) -> int | None:
    """Return None if a cut here changes nothing that is found, else an earlier place to try."""
    left, right = text[max(0, at - WINDOW) : at], text[at : at + WINDOW]
    whole = [(each.start, each.end) for each in scrubber.scrub(left + right).findings]
    through = [start for start, end in whole if start < len(left) < end]
    if through:
        return at - (len(left) - min(through))
    halves = [(each.start, each.end) for each in scrubber.scrub(left).findings]
    halves += [(each.start + len(left), each.end + len(left)) for each in scrubber.scrub(right).findings]
    if whole == halves:
        return None
    natural = natural_cut(text[:at], at - 1) if at > 1 else 0
    return natural if natural < at - 1 else at - _BACK
