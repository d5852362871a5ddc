"""Turn OpenTelemetry spans into capture events: decode, map to steps, assemble the steps of a trace."""
