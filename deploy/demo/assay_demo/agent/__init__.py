"""The demo's agent: it plays the sessions of `scenes.toml` with real tools, and writes its own log."""
