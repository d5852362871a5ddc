"""Captured events, out of the store."""
