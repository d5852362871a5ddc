"""`assay up`: run the whole system on one machine."""
