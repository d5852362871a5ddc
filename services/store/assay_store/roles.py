"""Roles of users and their rights. The engine enforces them as its own roles, profiles and limits.

Databases: `assay_base` contains the base tables, `assay` the FINAL views that people query. Views read the base tables
with their definer's rights, so a reader of `assay` needs no right on `assay_base` and has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_DATABASE = "default"
BASE_DATABASE = "assay_base"
VIEW_DATABASE = "assay"

EVALUATION_TABLES = ("eval_runs", "eval_results", "eval_outcomes")
"""Tables that an evaluator writes, and whose views it reads: nothing captured."""

CONTRADICTION_TABLES = ("contradiction_runs", "contradiction_pairs")
"""Tables that an evaluator inserts into. Pairs contain captured text, which it cannot read."""

FINDING_COLUMNS = "project, run_id, result_id, started_at, pair_id, pair_key, query_key, finding_id, verdict"
"""Columns of `contradiction_pairs` that an evaluator reads, to recognize findings: hashes, and no text."""

LABEL_COLUMNS = "project, result_id, label, labelled_at"
"""Columns of `contradiction_labels` that an evaluator reads, so that no gate fails for a refuted finding: no note, and no name."""

RUN_COLUMNS = "project, run_id, started_at, sampling, scope, pairs_gone"
"""Columns of `contradiction_runs` that an evaluator reads: a run without a row was not stored whole. No text of a document."""

REVIEW_TABLES = ("labels", "dataset_cases", "contradiction_labels")
"""Tables that the console writes: people's labels of answers and of pairs of documents, and cases of golden datasets."""

AUDIT_TABLE = "operations_audit"
"""Audit records of operations. No role can delete or change a row: not an operator, which inserts records, nor the owner."""

AUDIT_LOG_TABLES = ("audit_rows", "audit_leaves", "audit_disclosures", "audit_checkpoints", "audit_anchors")
"""Tables of the audit log. Of all services only the auditor inserts into them."""

KEPT_TABLES = (AUDIT_TABLE, "audit_leaves", "audit_checkpoints", "audit_anchors")
"""Tables of which no role deletes or changes a row. The owner deletes rows of the log and disclosures to expire or erase them."""

AUDITED_VIEWS = ("tool_calls", "server_events", "capture_failures", "operations_audit", "watermark")
"""Views of which the auditor writes the log."""

MERGE_TREE_ENGINES = (
    "MergeTree",
    "ReplacingMergeTree",
    "SummingMergeTree",
    "AggregatingMergeTree",
    "CollapsingMergeTree",
    "VersionedCollapsingMergeTree",
    "CoalescingMergeTree",
    "GraphiteMergeTree",
)
OTHER_ENGINES = ("Memory", "Null", "Log", "TinyLog", "StripeLog", "Join", "Set", "Buffer", "Merge", "GenerateRandom")


class Role(StrEnum):
    """The roles a user can have."""

    OWNER = "owner"
    WRITER = "writer"
    SRE = "sre"
    EXPORTER = "exporter"
    EVALUATOR = "evaluator"
    OPERATOR = "operator"
    CONSOLE = "console"
    AUDITOR = "auditor"

    @property
    def restricted(self) -> bool:
        """True for every role except the owner."""
        return self is not Role.OWNER

    @property
    def read_only(self) -> bool:
        """True for roles that cannot change anything."""
        return self in (Role.SRE, Role.EXPORTER)

    @property
    def makes_tables(self) -> bool:
        """True for roles that may create temporary tables."""
        return self in (Role.OWNER, Role.WRITER)


READER_SETTINGS = frozenset(
    {
        "max_execution_time", "max_memory_usage", "max_result_rows", "max_threads", "max_block_size",
        "max_rows_to_read", "max_bytes_to_read", "priority", "limit", "offset", "extremes",
        "join_use_nulls", "session_timezone", "date_time_output_format", "describe_compact_output",
        "output_format_json_quote_64bit_integers", "output_format_json_quote_denormals",
        "output_format_json_named_tuples_as_objects", "output_format_json_escape_forward_slashes",
        "output_format_native_write_json_as_string", "output_format_arrow_string_as_string",
        "output_format_csv_crlf_end_of_line", "output_format_pretty_color", "output_format_pretty_row_numbers",
    }
)  # fmt: skip
"""Settings that a reader may change for a query: lower limits, and the form of results.

All others are fixed (`readonly`).
"""

INPUT_SETTINGS = frozenset(
    {
        "date_time_input_format", "precise_float_parsing", "input_format_skip_unknown_fields", "input_format_null_as_default",
        "input_format_defaults_for_omitted_fields", "input_format_import_nested_json", "input_format_parallel_parsing",
        "input_format_allow_errors_num", "input_format_allow_errors_ratio", "input_format_json_read_numbers_as_strings",
        "input_format_json_read_objects_as_strings", "input_format_csv_skip_first_lines", "input_format_with_names_use_header",
        "input_format_with_types_use_header",
    }
)  # fmt: skip
"""Settings for parsing rows: of an INSERT, and of the external tables of a query."""

INSERT_SETTINGS = frozenset(
    {
        "async_insert", "wait_for_async_insert", "insert_deduplicate", "insert_deduplication_token", "max_insert_threads",
        "max_insert_block_size", "min_insert_block_size_rows", "min_insert_block_size_bytes", "max_partitions_per_insert_block",
    }
)  # fmt: skip
"""Additional settings for those who insert: the blocks in which rows are stored."""

NAMED_SETTINGS: dict[Role, frozenset[str]] = {
    Role.WRITER: READER_SETTINGS | INPUT_SETTINGS | INSERT_SETTINGS,
    Role.EVALUATOR: READER_SETTINGS | INPUT_SETTINGS | INSERT_SETTINGS,
    Role.OPERATOR: READER_SETTINGS | INPUT_SETTINGS | INSERT_SETTINGS,
    Role.CONSOLE: READER_SETTINGS | INPUT_SETTINGS | INSERT_SETTINGS | {"use_skip_indexes_if_final_exact_mode"},
    Role.AUDITOR: READER_SETTINGS | INPUT_SETTINGS | INSERT_SETTINGS,
    Role.SRE: READER_SETTINGS | INPUT_SETTINGS,
    Role.EXPORTER: READER_SETTINGS | INPUT_SETTINGS,
}


@dataclass(frozen=True)
class Limits:
    """Upper limits of one query. The engine refuses to raise them, by SET and by a SETTINGS clause.

    Attributes:
        memory_bytes: memory of one query; 0 is bounded by the whole store's cap alone.
        seconds: run time of one query, waiting for a slow client included; 0 is unlimited.
        result_rows: rows of one result; 0 is unlimited.
        priority: queries with a higher number pause while those with a lower one run; 0 is outside of this order.
    """

    memory_bytes: int = 0
    seconds: int = 0
    result_rows: int = 0
    priority: int = 0


STAGING_ROLE = "staging"
"""Not a user's role: may only create temporary tables; external data of a request is loaded under it."""

_ENGINE_GRANTS = tuple(f"GRANT TABLE ENGINE ON {name}" for name in MERGE_TREE_ENGINES + OTHER_ENGINES)

_NO_LOSS_OF_AUDIT = (
    # Each right that could make a row disappear or change: `OPTIMIZE ... DEDUPLICATE BY` and a TTL delete rows too.
    *(f"REVOKE ALTER, TRUNCATE, OPTIMIZE, DROP TABLE ON {BASE_DATABASE}.{table}" for table in KEPT_TABLES),
    *(f"GRANT ALTER ADD COLUMN, ALTER COMMENT COLUMN ON {BASE_DATABASE}.{table}" for table in KEPT_TABLES),
    f"REVOKE DROP DATABASE ON {BASE_DATABASE}.*",
)

_NO_PERSONAL_VALUES = (
    # Which personal fields of the audit log are not erased, but not their values.
    f"REVOKE SELECT ON {VIEW_DATABASE}.audit_disclosures",
    f"GRANT SELECT(log, leaf_index, digest) ON {VIEW_DATABASE}.audit_disclosures",
)

GRANTS: dict[str, tuple[str, ...]] = {
    Role.OWNER: (
        "GRANT SHOW, SELECT, INSERT, ALTER, TRUNCATE, OPTIMIZE, SYSTEM, BACKUP, KILL QUERY, UNDROP TABLE, dictGet ON *.*",
        "GRANT CREATE DATABASE, CREATE TABLE, CREATE VIEW, CREATE FUNCTION ON *.*",
        "GRANT DROP DATABASE, DROP TABLE, DROP VIEW, DROP FUNCTION ON *.*",
        "GRANT CREATE TEMPORARY TABLE, CREATE ARBITRARY TEMPORARY TABLE ON *.*",
        "GRANT READ, WRITE ON DISK",
        *_ENGINE_GRANTS,
        *_NO_LOSS_OF_AUDIT,
    ),
    Role.WRITER: (
        f"GRANT SHOW, SELECT, INSERT ON {BASE_DATABASE}.*",
        f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.*",
        "GRANT CREATE TEMPORARY TABLE ON *.*",
        "GRANT TABLE ENGINE ON Memory",
        *(f"REVOKE INSERT ON {BASE_DATABASE}.{table}" for table in (AUDIT_TABLE, *AUDIT_LOG_TABLES)),
    ),
    Role.SRE: (f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.*",),
    Role.EXPORTER: (f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.*", *_NO_PERSONAL_VALUES),
    Role.EVALUATOR: (
        *(f"GRANT INSERT ON {BASE_DATABASE}.{table}" for table in (*EVALUATION_TABLES, *CONTRADICTION_TABLES)),
        *(f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.{table}" for table in EVALUATION_TABLES),
        f"GRANT SELECT({RUN_COLUMNS}) ON {VIEW_DATABASE}.contradiction_runs",
        f"GRANT SELECT({FINDING_COLUMNS}) ON {VIEW_DATABASE}.contradiction_pairs",
        f"GRANT SELECT({LABEL_COLUMNS}) ON {VIEW_DATABASE}.contradiction_labels",
    ),
    Role.OPERATOR: (
        f"GRANT INSERT ON {BASE_DATABASE}.{AUDIT_TABLE}",
        *(f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.{view}" for view in (AUDIT_TABLE, "operations")),
    ),
    Role.CONSOLE: (
        f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.*",
        *_NO_PERSONAL_VALUES,  # everyone who is signed in can read what this role reads
        *(f"GRANT INSERT ON {BASE_DATABASE}.{table}" for table in REVIEW_TABLES),
    ),
    Role.AUDITOR: (
        *(f"GRANT SHOW, SELECT ON {VIEW_DATABASE}.{view}" for view in (*AUDITED_VIEWS, *AUDIT_LOG_TABLES)),
        # Who saved which case, without its question and answers.
        f"GRANT SELECT(project, dataset, case_id, version, reviewer, at, retired, stored_at) ON {VIEW_DATABASE}.dataset_case_versions",
        *(f"GRANT INSERT ON {BASE_DATABASE}.{table}" for table in AUDIT_LOG_TABLES),
    ),
    STAGING_ROLE: ("GRANT CREATE TEMPORARY TABLE ON *.*", "GRANT TABLE ENGINE ON Memory"),
}


CONSOLE_SECONDS = 5
"""Run time of one query of the console: a page that takes longer is of no use to its reader."""

CONSOLE_MEMORY_BYTES = 1_000_000_000
"""Memory of one query of the console, unless half of the store's cap is less."""


FIRST, SECOND, LAST = 1, 2, 3
"""Who waits for whom: rows of events and people at a page, then people's own queries, then long work."""


def limits(max_memory_bytes: int, max_query_seconds: int) -> dict[Role, Limits]:
    """Return the limits of each role, from the store's memory cap and the longest query of an SRE."""
    half = max_memory_bytes // 2
    return {
        Role.OWNER: Limits(),
        Role.WRITER: Limits(seconds=max_query_seconds * 10, priority=FIRST),
        Role.EVALUATOR: Limits(half, max_query_seconds * 10, priority=LAST),
        Role.OPERATOR: Limits(half, max_query_seconds, 1_000_000, SECOND),
        Role.SRE: Limits(half, max_query_seconds, 1_000_000, SECOND),
        Role.CONSOLE: Limits(
            min(half, CONSOLE_MEMORY_BYTES), min(max_query_seconds, CONSOLE_SECONDS), 1_000_000, FIRST
        ),
        Role.AUDITOR: Limits(half, max_query_seconds * 10, priority=LAST),
        Role.EXPORTER: Limits(max_memory_bytes * 3 // 4, max_query_seconds * 120, priority=LAST),
    }
