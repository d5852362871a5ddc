"""Selection of dead letters for an operation."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from assay_operations.dead_letters.letters import DeadLetter, Filter, Name, name_of
from assay_operations.errors import OperationError
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


class Choice:
    """The dead letters that a command changes.

    Without ids: all that match the filter, which must be given.
    """

    def __init__(self, command: str, ids: list[str] | None, everything: bool, wanted: Filter) -> None:
        self._names = list(dict.fromkeys(map(name_of, ids or [])))
        self._everything = everything
        self._wanted = wanted
        #: The given ids that do not exist.
        self.missing: list[Name] = []
        if self._names and everything:
            raise OperationError("invalid", f"{command}: pass ids or --all, not both")
        if not (self._names or everything or wanted):
            raise OperationError(
                "invalid", f"{command}: nothing selected; pass ids, a filter (--reason, --stage, --since) or --all"
            )

    @property
    def target(self) -> dict[str, Any]:
        """Return the selection, for an audit record."""
        wanted = self._wanted
        given = {
            "ids": [str(name) for name in self._names],
            "all": self._everything,
            "reason": wanted.reason,
            "stage": wanted.stage,
            "since_ms": wanted.since_ms,
        }
        return {name: value for name, value in given.items() if value}

    async def letters(self, client: "Client", settings: Settings) -> AsyncIterator[DeadLetter]:
        """Yield the given letters that match the filter, or all that match if none is given."""
        if not self._names:
            async for letter in matching(client, settings, self._wanted):
                yield letter
        for name in self._names:
            exists = False
            async for letter in named(client, settings, name):
                exists = True
                if self._wanted.wants(letter):
                    yield letter
            if not exists:
                self.missing.append(name)


async def matching(client: "Client", settings: Settings, wanted: Filter) -> AsyncIterator[DeadLetter]:
    """Yield all letters that match, shard by shard, oldest first."""
    from assay_runtime.dead_letters import letters

    for shard in range(settings.redis.shards):
        async for page in letters(client, shard, wanted.first):
            for letter_id, fields in page:
                letter = DeadLetter.of(shard, letter_id, fields)
                if wanted.wants(letter):
                    yield letter


async def named(client: "Client", settings: Settings, name: Name) -> AsyncIterator[DeadLetter]:
    """Yield the letters of this name: at most one, unless several shards have it."""
    from assay_runtime.dead_letters import letter

    for shard in range(settings.redis.shards):
        if name.shard in (None, shard) and (found := await letter(client, shard, name.id)):
            yield DeadLetter.of(shard, *found)


def called(letter: DeadLetter, settings: Settings) -> str:
    """Return a letter's name; it includes the shard if there are several."""
    return str(Name(letter.shard if settings.redis.shards > 1 else None, letter.id))


async def the_one(client: "Client", settings: Settings, name: Name) -> DeadLetter:
    """Return the letter of this name. Raises `OperationError` unless exactly one shard has it."""
    letters = [letter async for letter in named(client, settings, name)]
    if not letters:
        raise OperationError("not_found", f"no dead letter {name}; `assay dead list` shows the IDs")
    if len(letters) > 1:
        several = " or ".join(called(letter, settings) for letter in letters)
        raise OperationError("conflict", f"several shards have {name}; name one of them: {several}")
    return letters[0]
