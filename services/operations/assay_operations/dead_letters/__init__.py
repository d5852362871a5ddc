"""Entries given up after too many deliveries."""
