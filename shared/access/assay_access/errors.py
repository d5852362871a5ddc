"""Errors of this package."""


class AccessError(Exception):
    """Secrets cannot be read, or not be kept from others. The message names the file and what to do."""
