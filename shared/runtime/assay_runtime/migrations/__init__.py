"""SQL files of the migrations, and their runner (`assay_runtime.migrate`)."""

from assay_runtime.migrate import MigrationError, migrate, pending, schema_version

__all__ = ["MigrationError", "migrate", "pending", "schema_version"]
