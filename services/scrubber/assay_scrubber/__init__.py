"""Remove personal data and secrets from every event before its first durable write."""
