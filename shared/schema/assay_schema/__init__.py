"""Models of every stream, table and export. No I/O."""
