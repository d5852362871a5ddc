"""Requeue dead letters."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from assay_operations.dead_letters.choose import Choice, called
from assay_operations.dead_letters.letters import DeadLetter, NotRequeueableError
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


class Requeue:
    """Requeues letters page by page, and counts them."""

    def __init__(self, *, dry_run: bool, tell: Callable[[str], None]) -> None:
        """`tell` gets a line about each letter that was not requeued."""
        self.dry_run = dry_run
        self.left = 0
        #: Requeued letters by stream.
        self.sent = Counter[str]()
        self._tell = tell

    async def all_of(self, client: "Client", settings: Settings, chosen: "Choice") -> None:
        """Requeue all selected letters."""
        from assay_runtime.dead_letters import PAGE

        waiting: list[DeadLetter] = []
        async for letter in chosen.letters(client, settings):
            if waiting and (len(waiting) == PAGE or letter.shard != waiting[0].shard):
                await self._send(client, settings, waiting)
                waiting = []
            waiting.append(letter)
        await self._send(client, settings, waiting)

    async def _send(self, client: "Client", settings: Settings, letters: list[DeadLetter]) -> None:
        from assay_runtime.dead_letters import Move
        from assay_runtime.dead_letters import requeue as move

        moves = []
        for letter in letters:
            try:
                moves.append(Move(letter.id, *letter.requeued()))
            except NotRequeueableError as error:
                self._leave(letter, settings, f"cannot be requeued: {error}; drop it")
        if self.dry_run:
            self.sent.update(attempt.target.name for attempt in moves)
            return
        by_id = {letter.id: letter for letter in letters}
        done = await move(client, letters[0].shard, moves) if moves else []
        for attempt, moved in zip(moves, done, strict=True):
            if moved:
                self.sent[attempt.target.name] += 1
            else:
                self._leave(by_id[attempt.letter_id], settings, "gone meanwhile: requeued, dropped or expired")

    def _leave(self, letter: DeadLetter, settings: Settings, why: str) -> None:
        self.left += 1
        self._tell(f"{called(letter, settings)} {why}")
