"""Identities, their rights and their secrets."""
