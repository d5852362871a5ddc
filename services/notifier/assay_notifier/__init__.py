"""Notify people and machines of alerts: Alertmanager, Apprise, signed webhooks."""
