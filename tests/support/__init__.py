"""Provide the servers, processes, samples and wait functions that tests share. Nothing here is shipped."""
