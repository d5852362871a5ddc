"""Output of commands: text, tables, progress, verdicts."""
