"""Run the embedded store with an owner who may change every table of the audit log but that of the records of operations.

No role of the real store may. Tests change a log so, as somebody does who has the machine of the store.
"""

import runpy

from assay_store.roles import AUDIT_TABLE, GRANTS, KEPT_TABLES, Role

_TAKEN = tuple(f".{table}" for table in KEPT_TABLES if table != AUDIT_TABLE)

if __name__ == "__main__":
    GRANTS[Role.OWNER] = tuple(
        each for each in GRANTS[Role.OWNER] if not (each.startswith("REVOKE") and each.endswith(_TAKEN))
    )
    runpy.run_module("assay_store", run_name="__main__")
