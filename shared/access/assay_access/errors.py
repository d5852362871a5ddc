"""Errors of this package."""


class AccessError(Exception):
    """Secrets cannot be read or kept private. The message names the file and the fix."""
