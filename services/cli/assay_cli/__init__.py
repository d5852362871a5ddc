"""The assay command."""
