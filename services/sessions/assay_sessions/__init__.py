"""Sessions of agents: read from their logs, stored as one record in parts, exported and checked."""
