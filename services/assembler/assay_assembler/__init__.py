"""Turn OpenTelemetry spans into capture events: decode, map each span to a step, assemble the steps of a trace."""
