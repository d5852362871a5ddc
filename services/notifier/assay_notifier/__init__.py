"""Tells people and machines what changed: Alertmanager, Apprise, signed webhooks."""
