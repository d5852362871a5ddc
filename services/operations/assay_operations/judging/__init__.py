"""Judged answers."""
