"""Shared parts of all services: settings, streams, the store client, telemetry."""
