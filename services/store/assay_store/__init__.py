"""The embedded default store: chDB behind the ClickHouse HTTP protocol on loopback."""
