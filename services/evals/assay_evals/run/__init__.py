"""Evaluation runs: results of every case, in a folder or in the store."""
