"""Errors that the user can fix: an unusable rules file or file of reference trajectories."""


class ChecksError(ValueError):
    """Unusable rules or references.

    The message names the file and the key, and never quotes captured text."""
