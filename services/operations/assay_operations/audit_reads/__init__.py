"""Read the audit log for people: its state, pages of rows, one row, and the calls of a session.

Nothing here reads the values of personal fields: a reader of `audit_disclosures` with its columns `log`, `leaf_index` and `digest` is
enough. Names of agents and people, comments and sessions come from the events and records that rows are about, unless they were erased
from the log.
"""
