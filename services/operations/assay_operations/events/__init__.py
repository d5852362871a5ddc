"""Read captured events: pages of them, counts, one event with what belongs to it, and what differs.

Every function takes an open client of the store and reads the views only. Results are frozen dataclasses of plain values, which orjson and
pydantic write as JSON. Errors are `OperationError`s. No read is unbounded: the rollups give the bounds, or a time budget ends it.
"""
