"""Write scrubbed events and failures to ClickHouse, each exactly once."""
