"""Remember the verdicts that each person has seen: labels of these answers would not be blind. Pure."""

from collections import OrderedDict
from collections.abc import Iterable

#: People and answers of each that are remembered; the oldest are forgotten.
PEOPLE_MAX, ANSWERS_MAX = 100, 2_000


class ShownVerdicts:
    """The verdicts that this console has shown to people who may label, since it started."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def add(self, person: str, event_ids: Iterable[str]) -> None:
        """Note that a person was shown the verdicts on these answers."""
        seen = self._of.setdefault(person, OrderedDict())
        self._of.move_to_end(person)
        for event_id in event_ids:
            seen[event_id] = None
            seen.move_to_end(event_id)
        while len(seen) > ANSWERS_MAX:
            seen.popitem(last=False)
        while len(self._of) > PEOPLE_MAX:
            self._of.popitem(last=False)

    def to(self, person: str) -> tuple[str, ...]:
        """Return the answers whose verdict a person was shown, in a fixed order."""
        return tuple(sorted(self._of.get(person, ())))
