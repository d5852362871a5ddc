"""Systems under test: open one, send it queries, parse its responses."""
