"""One module per family. Each holds a `FAMILY` and the table of rules it is made of."""
