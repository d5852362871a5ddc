"""The sample producer: a real search service over the documentation of the Python standard library."""
