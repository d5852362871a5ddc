"""One module per family, each with a `FAMILY` and its table of rules."""
