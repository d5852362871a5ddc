"""Send scrubbed events and the judge's verdicts to an OpenTelemetry backend, as spans over OTLP."""
