"""What every service shares: settings, streams, the store client, telemetry."""
