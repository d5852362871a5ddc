"""Compare runs: rules, verdicts, floors, slices."""
