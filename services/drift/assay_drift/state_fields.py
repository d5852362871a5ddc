"""State of one shard, stored as JSON fields of a hash. Pure.

The prefix of a field's name is the kind of state: `score/PROJECT/METRIC/JUDGE` and so on. Only changed fields are
written.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from assay_drift.amounts import Amount
from assay_drift.conditions import Project
from assay_drift.episodes import Episode
from assay_drift.queries import Queries
from assay_drift.retrieval import Scaled
from assay_drift.series import Series, dump_episode, load_episode

SCORE, RETRIEVAL, AMOUNT, QUERIES, DAY = "score", "retrieval", "amount", "queries", "day"
PROJECT, SYSTEM = "project", "system"


class StateFields:
    """State by kind and key. Mutable: after a failed commit it is discarded and read again."""

    def __init__(self, fields: Mapping[str, bytes]) -> None:
        self.scores: dict[str, Series] = {}
        self.retrieval: dict[str, Scaled] = {}
        self.amounts: dict[str, Amount] = {}
        self.queries: dict[str, Queries] = {}
        self.projects: dict[str, Project] = {}
        self.system: dict[str, Episode] = {}
        self._touched: set[str] = set()
        self._known: set[str] = set(fields)
        self._load(fields)

    def _load(self, fields: Mapping[str, bytes]) -> None:
        days: dict[str, dict[int, Any]] = {}
        for name, data in fields.items():
            kind, _, rest = name.partition("/")
            if kind == DAY:
                key, _, day = rest.rpartition("/")
                days.setdefault(key, {})[int(day)] = orjson.loads(data)
        for name, data in fields.items():
            kind, _, rest = name.partition("/")
            if kind == SCORE:
                self.scores[rest] = Series.load(orjson.loads(data))
            elif kind == RETRIEVAL:
                self.retrieval[rest] = Scaled.load(orjson.loads(data))
            elif kind == AMOUNT:
                self.amounts[rest] = Amount.load(orjson.loads(data))
            elif kind == QUERIES:
                self.queries[rest] = Queries.load(orjson.loads(data), days.get(rest, {}))
            elif kind == PROJECT:
                self.projects[rest] = Project.load(orjson.loads(data))
            elif kind == SYSTEM:
                self.system = {key: load_episode(each) for key, each in orjson.loads(data).items()}

    def changes(self) -> dict[str, bytes | None]:
        """Return the fields to write since the last call; None for a field to delete."""
        made: dict[str, bytes | None] = {}
        for name in sorted(self._touched):
            kind, _, rest = name.partition("/")
            made[name] = orjson.dumps(self._dump(kind, rest))
            if kind == QUERIES:
                for stale in [each for each in self._known if self._is_stale_day(each, rest)]:
                    made[stale] = None
        self._known = (self._known | made.keys()) - {name for name, data in made.items() if data is None}
        self._touched.clear()
        return made

    def _dump(self, kind: str, rest: str) -> Any:
        if kind == DAY:
            key, _, day = rest.rpartition("/")
            return self.queries[key].dump_day(int(day))
        if kind == SYSTEM:
            return {key: dump_episode(each) for key, each in self.system.items()}
        kept: Any = {
            SCORE: self.scores, RETRIEVAL: self.retrieval, AMOUNT: self.amounts, QUERIES: self.queries,
            PROJECT: self.projects,
        }[kind]  # fmt: skip
        return kept[rest].dump()

    def _is_stale_day(self, name: str, queries: str) -> bool:
        kind, _, rest = name.partition("/")
        key, _, day = rest.rpartition("/")
        return kind == DAY and key == queries and int(day) not in self.queries[queries].days
