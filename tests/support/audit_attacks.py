"""List statements that try to remove or change records of the audit, with a sample record."""

AUDIT = "assay_base.operations_audit"
A_RECORD = (
    f"INSERT INTO {AUDIT} (schema_version, operation_id, outcome, at, operation, actor, identity, host, through, target, version)"
    " VALUES (1, '{}', 'started', '2026-01-05 00:00:00', 'prune', 'ana', 'owner', 'host', 'command line', '{{}}', '0')"
)

#: All known ways to remove or change a record.
LOSSES = [
    f"ALTER TABLE {AUDIT} DELETE WHERE 1",
    f"ALTER TABLE {AUDIT} UPDATE actor = 'eve' WHERE 1",
    f"DELETE FROM {AUDIT} WHERE 1",
    f"TRUNCATE TABLE {AUDIT}",
    f"DROP TABLE {AUDIT}",
    f"DETACH TABLE {AUDIT}",
    f"DETACH TABLE {AUDIT} PERMANENTLY",
    f"ALTER TABLE {AUDIT} DROP PARTITION tuple()",
    f"ALTER TABLE {AUDIT} DETACH PARTITION tuple()",
    f"ALTER TABLE {AUDIT} REPLACE PARTITION tuple() FROM assay_base.empty_audit",
    f"ALTER TABLE {AUDIT} MOVE PARTITION tuple() TO TABLE assay_base.empty_audit",
    f"ALTER TABLE {AUDIT} CLEAR COLUMN actor",
    f"ALTER TABLE {AUDIT} DROP COLUMN actor",
    f"ALTER TABLE {AUDIT} MODIFY COLUMN actor FixedString(1)",
    f"ALTER TABLE {AUDIT} RENAME COLUMN actor TO was",
    f"ALTER TABLE {AUDIT} MODIFY TTL toDateTime(at) + INTERVAL 1 SECOND",
    f"ALTER TABLE {AUDIT} MODIFY COLUMN actor String TTL toDateTime(at) + INTERVAL 1 SECOND",
    f"ALTER TABLE {AUDIT} MATERIALIZE TTL",
    f"ALTER TABLE {AUDIT} MODIFY SETTING ttl_only_drop_parts = 1",
    f"ALTER TABLE {AUDIT} ADD CONSTRAINT closed CHECK 0",
    f"OPTIMIZE TABLE {AUDIT} FINAL DEDUPLICATE BY schema_version",
    f"RENAME TABLE {AUDIT} TO assay_base.old_audit",
    f"EXCHANGE TABLES {AUDIT} AND assay_base.empty_audit",
    f"CREATE OR REPLACE TABLE {AUDIT} (a UInt8) ENGINE = MergeTree ORDER BY a",
    f"REPLACE TABLE {AUDIT} (a UInt8) ENGINE = MergeTree ORDER BY a",
    (
        f"INSERT INTO {AUDIT} (schema_version, operation_id, outcome, at, operation, actor, target, stored_at)"
        " VALUES (1, '00000000-0000-7000-8000-000000000009', 'started', '2026-01-05 00:00:00', 'prune', 'ana', '{}', '2000-01-01')"
    ),
]

#: Tables of the audit log of which the owner deletes nothing, and ways to remove or change rows of one.
KEPT = ("audit_leaves", "audit_checkpoints", "audit_anchors")
LOG_LOSSES = [
    "ALTER TABLE {} DELETE WHERE 1",
    "ALTER TABLE {} UPDATE stored_at = now64() WHERE 1",
    "DELETE FROM {} WHERE 1",
    "TRUNCATE TABLE {}",
    "DROP TABLE {}",
    "DETACH TABLE {}",
    "ALTER TABLE {} DROP PARTITION tuple()",
    "ALTER TABLE {} CLEAR COLUMN stored_at",
    "ALTER TABLE {} MODIFY TTL toDateTime(stored_at) + INTERVAL 1 SECOND",
    "OPTIMIZE TABLE {} FINAL DEDUPLICATE BY log",
    "RENAME TABLE {} TO assay_base.other",
]
